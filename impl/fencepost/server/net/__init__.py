"""Connections: frames in and out, with limits on what a peer may take."""
