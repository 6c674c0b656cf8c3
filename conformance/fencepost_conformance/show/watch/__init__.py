"""A running cluster on the terminal."""
