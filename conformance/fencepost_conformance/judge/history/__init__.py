"""The life of groups, as the records of the offsets topic show it.

``history_of`` reads the records once, in the order of each partition. It keeps state for each group, never the log.
"""
