"""Whether each fetched offset may have been the committed one."""
