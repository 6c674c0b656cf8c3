"""Random traces: a seed names the same trace on every machine."""
