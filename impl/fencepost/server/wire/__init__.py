"""Kafka's wire format: frames, headers, and messages by way of kio."""
