"""Judge a broker's answers while a group speaks the consumer protocol (KIP-848), or both protocols."""
