"""One trace, from a seed or a file, run again and shown step by step."""
