"""Histories of groups from large logs, on the engine of the user's choice."""
