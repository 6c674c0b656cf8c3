"""Play random scripts of requests on ``fencepost serve`` and on Kafka, and compare the answers."""
