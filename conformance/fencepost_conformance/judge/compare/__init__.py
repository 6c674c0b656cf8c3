"""Comparison of two coordinators: whether they did the same at each event."""
