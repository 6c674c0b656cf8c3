"""Random clients of a real broker: what they ask it, over the wire."""
