"""Which known fault of Kafka's is in which release: traces played again, and judged by the promise that each breaks."""
