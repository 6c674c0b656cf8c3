"""The history of groups, on the terminal and as a page."""
