"""Group members as step functions, and the assignors that a leader runs."""
