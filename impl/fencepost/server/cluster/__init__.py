"""Several nodes on one database, of which one leads."""
