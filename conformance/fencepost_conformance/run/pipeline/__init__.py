"""Runs of many traces: planned as ranges of seeds, checked in chunks, one row a trace, with any number of workers."""
