"""Cases of classic groups."""
