"""Falsified copies of recorded traces: each breaks the protocol in one place, and the checker must reject it."""
