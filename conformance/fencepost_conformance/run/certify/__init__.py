"""``fencepost certify``: makes the checks that a certificate is about, and writes it."""
