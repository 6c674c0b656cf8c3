"""Named faults, and the suite that must find each of them."""
