"""Coverage of the protocols by a set of traces, and the reasons for what is not covered."""
