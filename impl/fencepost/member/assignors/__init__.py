"""Assignors: a leader uses one to share the partitions among the members."""
