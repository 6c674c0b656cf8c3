"""``python -m fencepost.certification``: compare the certificate with the installed files."""

from .checking import main

main()
