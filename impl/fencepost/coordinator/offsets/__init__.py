"""Committed offsets: permissions, storage, reads and expiry (section 6 of the rules).

Offsets are stored beside the groups, not within them (G-DATA-42), in one store for all (``kernel.stored_offsets``). The
same function applies a record live and on replay (``offset_appliers``).
"""
