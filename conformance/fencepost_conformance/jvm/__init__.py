"""Kafka's own classes in a JVM of ours: jars, the compiled harness, its process and what it is told."""
