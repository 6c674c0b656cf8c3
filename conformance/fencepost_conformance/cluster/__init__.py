"""Spark beyond one process: where it runs, what it is given to run, and where its rows go."""
