"""Checks that the state is in the log: a fresh coordinator loads a trace's log, and must have the live state.

A log is seldom loaded as it was written: the log cleaner has worked on it, or is working (``generate.cleaner``). Hard
state is in records, and survives (``hard``); soft state is lost, and is listed there. ``core`` asks the core, ``kafka``
asks Apache Kafka's own coordinator and compares both (INV-REPLAY-01, INV-REPLAY-02, 11.3–11.7).
"""
