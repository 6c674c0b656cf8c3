"""Two targets side by side over random traces: what differs, grouped by cause (``docs/diff.md``)."""
