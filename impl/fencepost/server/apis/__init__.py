"""What each API of the protocol does, by area; ``table`` has them all with their versions."""
