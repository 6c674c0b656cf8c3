"""Groups with members of both protocols (rule book, section 9).

A consumer group may have members that speak the classic protocol. They are members like the others: the same update,
the same target, the same reconciliation. Only the requests differ. A classic member sends its subscription and the
partitions that it owns in JoinGroup, gets its assignment by SyncGroup, and learns from Heartbeat only that it should
join again. It does not wait for other members, and no leader assigns. Its generation is its member epoch.

``upgrade`` turns a classic group into a consumer group when the first member of the consumer protocol joins;
``downgrade`` turns it back when the last such member has gone. In between, ``classic_join`` and ``classic_member``
serve the classic members, and members of both protocols leave by ``departure``. ``embedded`` reads the bytes of classic
members, and decides which of their claims are believed.
"""
