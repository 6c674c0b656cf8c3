"""Kafka's own client as the judge of the member: one schedule for both, compared event by event."""
