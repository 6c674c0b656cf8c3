"""Topics and their batches, which are stored unchanged: the part of a broker that producers and consumers need."""
