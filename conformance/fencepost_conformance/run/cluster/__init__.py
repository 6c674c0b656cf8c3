"""Spark beyond one process: where it runs, what it needs to run, and where its rows go."""
