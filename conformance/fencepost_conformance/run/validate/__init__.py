"""Runs of the checker over many trace files."""
