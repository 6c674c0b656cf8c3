"""Faults of groups of both protocols, to be planted into core and members: for tests that must see them."""

from __future__ import annotations

from contextlib import contextmanager

from fencepost.coordinator.consumer import update
from fencepost.coordinator.mixed import downgrade, upgrade
from fencepost.member import completing
from fencepost_conformance.mutants.patched import Patches


def forgets_what_was_assigned(patches):
    """An upgraded group has members that own nothing."""
    patches.attribute(upgrade, "assigned", lambda rows, topics: {})


def gives_nothing_on_the_way_back(patches):
    """A downgraded group has members without assignments."""
    original = patches.attribute(downgrade, "encoded", lambda share, topics, data: original({}, topics, data))


def takes_what_classic_members_hold(patches):
    """Members of the consumer protocol are given partitions before their holders have released them."""

    def reconciled(step, group, member, goal, owned, *, changed):
        freed = group._replace(partition_epochs={}) if member.classic is None else group
        return original(step, freed, member, goal, owned, changed=changed)

    original = patches.attribute(update, "reconciled", reconciled)


def does_not_await_the_commit(patches):
    """A classic member gives its partitions up while their positions are being committed."""
    original = patches.attribute(completing, "_commit_over", lambda turn: original(turn) or True)


@contextmanager
def broken_by(plant):
    """While this is entered, the fault is in the program."""
    patches = Patches()
    try:
        plant(patches)
        yield
    finally:
        patches.take_back()
