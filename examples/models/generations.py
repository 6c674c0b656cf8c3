"""Properties of classic groups, for any configuration of that family."""


def owners_are_members(group, log, client):
    """A client that owns partitions in the current generation is a member."""
    return all(
        each.memberId in group.members
        for each in client.values()
        if each.owned and each.ownedGeneration == group.generationId == log.generationId
    )


def the_generation_never_decreases(action, group, new_group):
    """Only a new coordinator, which loads the log, may have an older generation."""
    return new_group.generationId >= group.generationId or action[0] == "CoordinatorFailsOver"
