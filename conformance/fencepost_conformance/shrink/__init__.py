"""From a trace that fails to the shortest that still fails in the same way."""
