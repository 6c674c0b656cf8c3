"""One look at a running cluster, with requests that only read."""
