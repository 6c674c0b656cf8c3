"""Groups with members of both protocols (rule book, section 9).

A consumer group may have members that speak the classic protocol. They are members like the others: the same update,
the same target, the same reconciliation. What differs is the conversation. A classic member says what it owns and wants
in JoinGroup, takes its share by SyncGroup, and learns from Heartbeat only that it should join again; it waits for
nobody, and no leader assigns. Its generation is its member epoch.

``upgrade`` makes a consumer group of a classic one when the first member of the consumer protocol comes, ``downgrade``
a classic one when the last such member has gone. Between the two, ``join``, ``sync``, ``heartbeat`` and ``leave`` serve
the classic members. ``claims`` says how much of what they say of themselves is believed.
"""
