"""The bridge to TLC, the model checker of TLA+: run it, read its graph, compare it with the explorer's (link E1)."""
