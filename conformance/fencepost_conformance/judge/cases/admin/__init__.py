"""Cases of the requests of administrators, and of every announced version."""
