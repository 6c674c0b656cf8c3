"""Many traces: planned as ranges of seeds, checked in chunks, one row a trace, however many workers."""
