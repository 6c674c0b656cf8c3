"""Recorded traces as data for TLC, which validates them against the specification in ``spec/``."""
