"""The state of a running cluster: the last look at its groups, joined with the history from the offsets topic."""
