"""Is the state in the log? What a trace wrote is loaded into a fresh coordinator, and has to give what was live.

A log is seldom loaded as it was written: the log cleaner has been there, or is there now (``generate.cleaner``). Hard
state is what records say, and survives (``hard``); soft state is lost, and is named there. ``core`` asks the core,
``kafka`` Apache Kafka's own coordinator and both together (INV-REPLAY-01, INV-REPLAY-02, 11.3–11.7).
"""
