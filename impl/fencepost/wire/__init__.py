"""Kafka's wire format: frames, headers, and messages, whose classes are kio's."""
