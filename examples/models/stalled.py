"""Two clients, one of which may stall for longer than its session timeout."""

based_on = "EagerQuiet"
faults = 1
allowed = {"ClientStarts", "SessionTimerFiresEarly"}
properties = ["NoPartitionHasTwoCommitters"]


def no_partition_has_two_owners(client):
    """No two clients believe that they own the same partition."""
    return not (client["c1"].owned & client["c2"].owned)
