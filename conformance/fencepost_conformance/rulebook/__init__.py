"""The rule book as data, and where each of its rules stands in the project."""
