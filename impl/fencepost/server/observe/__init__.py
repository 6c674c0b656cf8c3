"""What a server tells of itself: numbers for Prometheus, a page for people, lines for a log."""
