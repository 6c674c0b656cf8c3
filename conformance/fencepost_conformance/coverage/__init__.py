"""What a set of traces has reached of the classic protocol, and why the rest is not reached."""
