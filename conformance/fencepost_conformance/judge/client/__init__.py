"""Kafka's own client as the judge of the member: both run the same schedule and are compared event by event."""
