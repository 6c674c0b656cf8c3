"""Topics and their batches, kept as they come: as much of a broker's data as consumers and producers need to work."""
