"""The decision of a build whether the wheel carries the certificate."""

from __future__ import annotations

from pathlib import Path

from .checking import examine
from .files import PartFolders
from .statement import BadCertificate

_MAKE = "'fencepost certify' makes one"


def reason_to_leave_out(kept: Path, built: PartFolders, *, compiled: bool, release: bool) -> str | None:
    """Return why a wheel of the built files must not carry the certificate ``kept``, or None.

    Args:
        kept: the certificate, which need not exist.
        built: the files of the wheel.
        compiled: whether the wheel has compiled modules.
        release: whether the wheel is for a release, which needs every link.
    """
    if compiled:
        return "the compiled modules are not the files that were checked"
    try:
        found = examine(built, kept)
    except FileNotFoundError:
        return f"there is none; {_MAKE}"
    except BadCertificate as bad:
        return f"{kept.name} is not a certificate: {bad}; {_MAKE}"
    against = [*found.refused, *(f"missing: {each}" for each in found.missing if release)]
    more = f" (and {len(against) - 1:,} more)" if len(against) > 1 else ""
    return f"{against[0]}{more}; {_MAKE}" if against else None
