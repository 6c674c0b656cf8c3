"""The rule book as data, and the status of each of its rules in the project."""
