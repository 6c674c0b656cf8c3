"""Several nodes on one database, one of which leads."""
