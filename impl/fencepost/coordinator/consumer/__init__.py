"""Consumer groups of KIP-848: the half of the coordinator whose state is its records (section 7).

A heartbeat is worked out on the frozen group and ends in a list of records; nothing changes until these are applied,
live by ``Step.write`` and on replay by the same functions (``replay``). What a group knows beside its records is one
deadline (``ConsumerGroup.refresh``); what the coordinator knows beside its groups are armed timers and running tasks.
"""
