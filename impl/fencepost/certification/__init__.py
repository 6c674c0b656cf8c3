"""The certificate of the core: what was checked, for exactly which files.

``fencepost certify`` writes it, and a wheel that is built for a release carries it. ``fencepost certify --check``, or
``python -m fencepost.certification``, compares it with the installed files. This package needs the standard library
only, and imports nothing else of ``fencepost``, so it runs wherever the library is installed.
"""

from .checking import Finding, examine
from .statement import Certificate, Check, MissingLink, Subject
from .where import NoCertificate, certificate

__all__ = ["Certificate", "Check", "Finding", "MissingLink", "NoCertificate", "Subject", "certificate", "examine"]
