"""Shrinking: from a failing trace to the shortest that still fails in the same way."""
