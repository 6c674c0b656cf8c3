"""The recorder: a proxy between real clients and a real broker that writes its observations as a trace."""
