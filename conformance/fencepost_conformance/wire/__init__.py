"""Kafka's wire format as the suite needs it: frames, headers, and messages by way of kio."""
