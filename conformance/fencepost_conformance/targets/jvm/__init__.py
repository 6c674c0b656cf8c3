"""Kafka's own classes in a JVM: jars, the compiled harness, its process and its input."""
