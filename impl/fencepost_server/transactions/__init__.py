"""The transaction coordinator: producer ids and epochs, and the partitions and the end of each transaction."""
