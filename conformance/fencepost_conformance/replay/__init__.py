"""One trace, from a seed or a file, run again and told step by step."""
