"""Two targets side by side over random traces: their differences, grouped by cause (``docs/diff.md``)."""
