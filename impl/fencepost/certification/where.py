"""The certificate of the installed package."""

from __future__ import annotations

from .files import PartFolders
from .statement import BadCertificate, Certificate, read_text


class NoCertificate(LookupError):
    """The installed package has no certificate, or one that cannot be read; the message says how to make one."""


def certificate() -> Certificate:
    """Return the certificate that the installed package carries. This reads it and does not check it: use
    ``fencepost certify --check``, or ``examine``.

    Raises:
        NoCertificate: there is none, or it cannot be read.
    """
    path = PartFolders.installed().certificate
    try:
        return read_text(path.read_bytes())
    except FileNotFoundError:
        raise NoCertificate(
            "this installation of fencepost has no certificate; in a checkout, 'fencepost certify' makes one"
        ) from None
    except BadCertificate as reason:
        raise NoCertificate(f"{path} is not a certificate: {reason}") from None
