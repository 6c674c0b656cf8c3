"""Assignors: how a leader shares the partitions among the members."""
