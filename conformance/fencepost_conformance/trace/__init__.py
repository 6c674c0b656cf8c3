"""The trace formats: JSON Lines that other programs can write and read (``docs/traces.md``), and ITF."""

from .files import BrokenTrace, EventTrace, Trace, WireTrace, lines_of, read_traces, write_traces

__all__ = ["BrokenTrace", "EventTrace", "Trace", "WireTrace", "lines_of", "read_traces", "write_traces"]
