"""Named cases: what a broker must do for consumer groups, one short function for each.

A case sends requests over the wire and states what the answers must contain. It has a name (``classic.join.3``), a
sentence that says what it does and what must happen, and the rules that it tests. It knows nothing of the broker but
its address, so it runs on any broker that speaks Kafka's protocol. ``play`` plays many cases at once, each in its own
group.
"""
