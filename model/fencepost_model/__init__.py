"""Executable model of the group protocol, explorer, and bridge to TLC."""
