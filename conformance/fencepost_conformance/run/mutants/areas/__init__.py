"""Planted faults of the server, the stores and the drivers, by area, and the tests that kill them."""
