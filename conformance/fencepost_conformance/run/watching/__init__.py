"""The run of ``fencepost watch``: it looks at a cluster again and again, and follows its offsets topic."""
