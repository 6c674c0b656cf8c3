"""Traces: their format (JSON Lines, and ITF), and the recorder that writes them (``docs/traces.md``)."""
