"""Runs: the commands, the main job, and how their work spreads over processes and Spark."""
