"""Falsified copies of recorded traces: each breaks the protocol in one place, and a checker must refuse it."""
