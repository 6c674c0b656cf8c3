"""Committed offsets: who may commit, what is stored, who sees it, and when it goes (section 6 of the rules).

Offsets live beside the groups, not within them (G-DATA-42), in one store for all (``kernel.stored_offsets``). A record
is applied live and on replay by the same function (``replay``).
"""
