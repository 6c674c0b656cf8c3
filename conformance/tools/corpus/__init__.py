"""Makes the bundled corpus: real clients on a real broker, played through scenarios and recorded."""
