"""Fencepost: the coordination behind Kafka consumer groups, as a library."""
