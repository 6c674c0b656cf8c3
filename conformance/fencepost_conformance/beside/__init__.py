"""Random scripts of requests, played on ``fencepost serve`` and on Kafka, whose answers are compared."""
