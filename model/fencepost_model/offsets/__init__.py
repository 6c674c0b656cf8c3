"""Committed offsets: commits, transactions, reads, deletion and expiry (rule book, section 6)."""
