"""Whether members fetch records from possible positions."""
