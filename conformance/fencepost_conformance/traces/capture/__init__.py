"""Packet captures: from the packets of a file to a wire trace."""
