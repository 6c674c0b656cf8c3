"""The base of every kind of group: the state of a coordinator, the step that changes it, its log and its timers.

Modules in here know nothing about groups except the interface ``Group``.
"""
