"""Consumer groups of KIP-848: the half of the coordinator whose state is its records (section 7).

A heartbeat is computed on the frozen group and ends in a list of records. Nothing changes until these are applied, live
by ``Step.write`` and on replay by the same functions (``consumer_appliers``). Beside its records a group only has one
deadline (``ConsumerGroup.refresh``); beside its groups the coordinator has the timers that are set and the running
tasks.
"""
