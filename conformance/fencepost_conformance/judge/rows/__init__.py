"""The row that results from each trace of a run, and their summary."""
