"""Classic groups (rule book, sections 3 to 5): members join, one of them leads and assigns, and all of them sync."""
