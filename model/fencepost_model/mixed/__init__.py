"""Classic requests to consumer groups (rule book, 9)."""
