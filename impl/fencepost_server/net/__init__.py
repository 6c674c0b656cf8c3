"""Connections: they read and write frames, within the limits for clients."""
