"""The observation of a server: numbers for Prometheus, a status page for people, and log lines."""
