"""The differences between two targets, on the terminal and as files."""
