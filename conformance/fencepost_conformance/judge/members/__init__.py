"""The judge of members: what a client may send, given the answers that it got."""
