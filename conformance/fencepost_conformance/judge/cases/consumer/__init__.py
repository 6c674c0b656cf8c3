"""Cases of consumer groups (KIP-848)."""
