"""Cases of committed offsets."""
