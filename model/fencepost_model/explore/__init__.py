"""Explicit-state exploration: breadth first, shortest counter-examples, fair cycles. See ``docs/checking.md``."""
