"""The recorder: a proxy between real clients and a real broker that writes what it sees as a trace."""
