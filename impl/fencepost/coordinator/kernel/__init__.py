"""What every kind of group stands on: the state of a coordinator, the step that changes it, its log and its timers.

Nothing in here knows what a group is, but for the few things that a ``Group`` tells of itself.
"""
