"""The state machines of groups and members, as data.

This is the only place where states, triggers, sources and destinations are declared. Everything else is derived from
it: the table that the model's fast path steps with (``table``), the diagrams (``diagram``), and, with the library
``transitions``, a machine that a reader can drive by hand.

A trigger is a *cause* and not just an edge: "a member was added" leads to PreparingRebalance from three states, "the
leader rejoined" only from Stable. So the machine also says which causes can occur in which state. The model fires a
trigger at each change of state, and the machine checks it: a cause in a state that does not list it is an illegal
transition.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from transitions import Machine

ANY: Final = "*"


@dataclass(frozen=True, slots=True)
class Transition:
    """A transition. ``rules`` are the ids of the rule book that state it."""

    trigger: str
    sources: tuple[str, ...]
    dest: str
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MachineSpec:
    """A machine. ``initial`` lists every state in which an object may be created, with the rules for that."""

    name: str
    title: str
    states: dict[str, tuple[str, ...]]  #: state name -> rules that define it
    initial: dict[str, tuple[str, ...]]
    transitions: tuple[Transition, ...]

    def expand(self) -> Iterable[tuple[str, str, str, Transition]]:
        """Yield every (source, trigger, destination), with wildcards expanded."""
        for transition in self.transitions:
            for source in self.states if transition.sources == (ANY,) else transition.sources:
                yield source, transition.trigger, transition.dest, transition


EMPTY: Final = "Empty"
PREPARING: Final = "PreparingRebalance"
COMPLETING: Final = "CompletingRebalance"
STABLE: Final = "Stable"
DEAD: Final = "Dead"

CLASSIC_GROUP = MachineSpec(
    name="classic-group",
    title="Classic group, coordinator side",
    states={
        EMPTY: ("C-ST-01",),
        PREPARING: ("C-ST-02",),
        COMPLETING: ("C-ST-03",),
        STABLE: ("C-ST-04",),
        DEAD: ("C-ST-05",),
    },
    initial={EMPTY: ("C-ST-06", "C-ST-07"), STABLE: ("C-ST-07", "C-ST-08")},
    transitions=(
        Transition("member_added", (EMPTY,), PREPARING, ("C-ST-10", "C-JOIN-40")),
        Transition("member_added", (COMPLETING,), PREPARING, ("C-ST-12", "C-JOIN-40")),
        Transition("member_added", (STABLE,), PREPARING, ("C-ST-11", "C-JOIN-40")),
        Transition("protocols_changed", (COMPLETING,), PREPARING, ("C-ST-12", "C-JOIN-52")),
        Transition("protocols_changed", (STABLE,), PREPARING, ("C-ST-11", "C-JOIN-54")),
        Transition("leader_rejoined", (STABLE,), PREPARING, ("C-ST-11", "C-JOIN-53")),
        Transition("static_member_replaced", (COMPLETING,), PREPARING, ("C-ST-12", "C-STATIC-09")),
        Transition("static_member_replaced", (STABLE,), PREPARING, ("C-ST-11", "C-STATIC-08")),
        Transition("member_left", (COMPLETING,), PREPARING, ("C-ST-12", "C-LEAVE-21")),
        Transition("member_left", (STABLE,), PREPARING, ("C-ST-11", "C-LEAVE-21")),
        Transition("session_expired", (COMPLETING,), PREPARING, ("C-ST-12", "C-TMR-07")),
        Transition("session_expired", (STABLE,), PREPARING, ("C-ST-11", "C-TMR-07")),
        Transition("sync_expired", (COMPLETING,), PREPARING, ("C-ST-12", "C-SYNC-20")),
        Transition("sync_expired", (STABLE,), PREPARING, ("C-ST-11", "C-SYNC-20")),
        Transition("assignment_not_stored", (COMPLETING,), PREPARING, ("C-ST-12", "C-SYNC-22")),
        Transition("loaded_over_capacity", (STABLE,), PREPARING, ("C-ST-11", "F-LOAD-06")),
        Transition("all_joined", (PREPARING,), COMPLETING, ("C-ST-13", "C-JOIN-48")),
        Transition("nobody_joined", (PREPARING,), EMPTY, ("C-ST-14", "C-JOIN-47")),
        Transition("assignment_stored", (COMPLETING,), STABLE, ("C-ST-15", "C-SYNC-21")),
        Transition("unloaded", (ANY,), DEAD, ("C-ST-16", "C-ST-25", "F-UNLOAD-01")),
    ),
)

UNJOINED: Final = "UNJOINED"
M_PREPARING: Final = "PREPARING_REBALANCE"
M_COMPLETING: Final = "COMPLETING_REBALANCE"
M_STABLE: Final = "STABLE"

CLASSIC_MEMBER = MachineSpec(
    name="classic-member",
    title="Classic member, client side",
    states={
        UNJOINED: ("K-ST-01",),
        M_PREPARING: ("K-ST-02",),
        M_COMPLETING: ("K-ST-03",),
        M_STABLE: ("K-ST-04",),
    },
    initial={UNJOINED: ("K-ST-01",)},
    transitions=(
        Transition("send_join", (ANY,), M_PREPARING, ("K-ST-10",)),
        Transition("join_answered", (M_PREPARING,), M_COMPLETING, ("K-ST-11",)),
        Transition("sync_answered", (M_COMPLETING,), M_STABLE, ("K-ST-12",)),
        Transition("reset", (ANY,), UNJOINED, ("K-ST-13",)),
    ),
)

G_EMPTY: Final = "Empty"
G_ASSIGNING: Final = "Assigning"
G_RECONCILING: Final = "Reconciling"
G_STABLE: Final = "Stable"

#: The state follows from the group's epochs and members (M-ST-06), so a cause is named after its result.
CONSUMER_GROUP = MachineSpec(
    name="consumer-group",
    title="Consumer group, coordinator side",
    states={
        G_EMPTY: ("M-ST-01",),
        G_ASSIGNING: ("M-ST-02",),
        G_RECONCILING: ("M-ST-03",),
        G_STABLE: ("M-ST-04",),
    },
    initial={
        G_EMPTY: ("F-REPLAY-11",),
        G_ASSIGNING: ("F-LOAD-01",),
        G_RECONCILING: ("M-VAL-21", "F-LOAD-01"),
        G_STABLE: ("M-VAL-21", "F-LOAD-01"),
    },
    transitions=(
        Transition("bumped", (G_EMPTY, G_RECONCILING, G_STABLE), G_ASSIGNING, ("M-ST-07", "M-TGT-09")),
        Transition("targets_computed", (G_EMPTY, G_ASSIGNING, G_STABLE), G_RECONCILING, ("M-TGT-01", "M-ST-03")),
        Transition("last_member_reconciled", (G_EMPTY, G_ASSIGNING, G_RECONCILING), G_STABLE, ("M-ST-04",)),
        Transition("last_member_left", (G_ASSIGNING, G_RECONCILING, G_STABLE), G_EMPTY, ("M-LEAVE-04",)),
    ),
)

C_STABLE: Final = "STABLE"
C_UNREVOKED: Final = "UNREVOKED_PARTITIONS"
C_UNRELEASED: Final = "UNRELEASED_PARTITIONS"
C_UNKNOWN: Final = "UNKNOWN"

CONSUMER_MEMBER = MachineSpec(
    name="consumer-member",
    title="Member of a consumer group, coordinator side",
    states={
        C_STABLE: ("M-MS-01",),
        C_UNREVOKED: ("M-MS-02",),
        C_UNRELEASED: ("M-MS-03",),
        C_UNKNOWN: ("M-MS-04",),
    },
    initial={
        C_STABLE: ("G-DATA-29", "F-REPLAY-08"),
        C_UNREVOKED: ("F-REPLAY-08",),
        C_UNRELEASED: ("F-REPLAY-08",),
        C_UNKNOWN: ("F-REPLAY-08",),
    },
    transitions=(
        Transition("revoke", (ANY,), C_UNREVOKED, ("M-REC-10", "M-REC-25")),
        Transition("wait", (ANY,), C_UNRELEASED, ("M-REC-11", "M-REC-13")),
        Transition("settle", (ANY,), C_STABLE, ("M-REC-12", "M-REC-14")),
    ),
)

UNSUBSCRIBED: Final = "UNSUBSCRIBED"
JOINING: Final = "JOINING"
RECONCILING: Final = "RECONCILING"
ACKNOWLEDGING: Final = "ACKNOWLEDGING"
SETTLED: Final = "STABLE"
FENCED: Final = "FENCED"
PREPARE_LEAVING: Final = "PREPARE_LEAVING"
LEAVING: Final = "LEAVING"
STALE: Final = "STALE"
FATAL: Final = "FATAL"
#: The states of a member that the coordinator counts, or will count.
IN_GROUP: Final = (JOINING, RECONCILING, ACKNOWLEDGING, SETTLED)

#: JOINING to STABLE and UNSUBSCRIBED to PREPARE_LEAVING are legal in Kafka and never taken (N-TR-03).
CONSUMER_CLIENT = MachineSpec(
    name="consumer-client",
    title="Member of a consumer group, client side",
    states={
        UNSUBSCRIBED: ("N-ST-01",),
        JOINING: ("N-ST-02",),
        RECONCILING: ("N-ST-03",),
        ACKNOWLEDGING: ("N-ST-04",),
        SETTLED: ("N-ST-05",),
        FENCED: ("N-ST-06",),
        PREPARE_LEAVING: ("N-ST-07",),
        LEAVING: ("N-ST-08",),
        STALE: ("N-ST-09",),
        FATAL: ("N-ST-10",),
    },
    initial={UNSUBSCRIBED: ("N-ST-01",)},
    transitions=(
        Transition("poll_subscribed", (UNSUBSCRIBED,), JOINING, ("N-ST-20", "N-TR-01", "N-TR-14")),
        Transition("loss_reported", (FENCED,), JOINING, ("N-ST-20", "N-TR-06")),
        Transition("poll_again", (STALE,), JOINING, ("N-ST-20", "N-TR-10")),
        Transition("target_received", IN_GROUP, RECONCILING, ("N-ST-21", "N-TR-02")),
        Transition("target_is_current", (RECONCILING,), SETTLED, ("N-ST-23", "N-TR-03")),
        Transition("reconciled", (RECONCILING,), ACKNOWLEDGING, ("N-ST-22", "N-TR-04", "N-REC-03")),
        Transition("acknowledged", (ACKNOWLEDGING,), SETTLED, ("N-ST-23", "N-TR-05")),
        Transition("acknowledged_part", (ACKNOWLEDGING,), RECONCILING, ("N-ST-21", "N-TR-05")),
        Transition("fenced", IN_GROUP, FENCED, ("N-ST-24", "N-TR-06")),
        Transition("fenced", (PREPARE_LEAVING,), UNSUBSCRIBED, ("N-ST-28", "N-ERR-02")),
        Transition("leave", IN_GROUP, PREPARE_LEAVING, ("N-ST-26", "N-TR-07", "N-TR-09")),
        Transition("leave", (FENCED,), UNSUBSCRIBED, ("N-ST-28", "N-TR-07")),
        Transition("released", (PREPARE_LEAVING,), LEAVING, ("N-ST-27", "N-TR-07", "N-TR-09")),
        Transition("left", (LEAVING,), UNSUBSCRIBED, ("N-ST-28", "N-TR-08", "N-TR-12")),
        Transition("left_stale", (LEAVING,), STALE, ("N-ST-29", "N-TR-08", "N-TR-09")),
        Transition("fatal", (*IN_GROUP, PREPARE_LEAVING, LEAVING, UNSUBSCRIBED), FATAL, ("N-ST-25", "N-TR-11")),
    ),
)

NO_OFFSET: Final = "None"
COMMITTED: Final = "Committed"
PENDING: Final = "Pending"
PENDING_OVER: Final = "PendingOverCommitted"

#: A transaction ends for one producer. Where others have offsets pending at the same place, it is one of several.
OFFSET = MachineSpec(
    name="offset",
    title="Offset of one partition in a group, coordinator side",
    states={
        NO_OFFSET: ("O-FETCH-06",),
        COMMITTED: ("G-DATA-40",),
        PENDING: ("G-DATA-41", "O-TXN-07"),
        PENDING_OVER: ("G-DATA-41", "O-FETCH-08"),
    },
    initial={NO_OFFSET: ("O-FETCH-06",)},
    transitions=(
        Transition("commit", (NO_OFFSET, COMMITTED), COMMITTED, ("O-COMMIT-09", "F-REPLAY-02")),
        Transition("commit", (PENDING, PENDING_OVER), PENDING_OVER, ("O-COMMIT-09", "F-REPLAY-02")),
        Transition("commit_in_transaction", (NO_OFFSET, PENDING), PENDING, ("O-TXN-07", "O-TXN-09")),
        Transition("commit_in_transaction", (COMMITTED, PENDING_OVER), PENDING_OVER, ("O-TXN-07", "O-TXN-09")),
        Transition("transaction_committed", (PENDING, PENDING_OVER), COMMITTED, ("O-TXN-08",)),
        Transition("transaction_aborted", (PENDING,), NO_OFFSET, ("O-TXN-08",)),
        Transition("transaction_aborted", (PENDING_OVER,), COMMITTED, ("O-TXN-08",)),
        Transition("one_of_several_committed", (PENDING, PENDING_OVER), PENDING_OVER, ("O-TXN-08",)),
        Transition("one_of_several_aborted", (PENDING,), PENDING, ("O-TXN-08",)),
        Transition("one_of_several_aborted", (PENDING_OVER,), PENDING_OVER, ("O-TXN-08",)),
        Transition("expired", (COMMITTED,), NO_OFFSET, ("O-EXP-12",)),
        Transition("removed", (ANY,), NO_OFFSET, ("O-TXN-10", "O-DEL-06", "O-EXP-23", "C-ADM-09")),
    ),
)

INITIALIZING: Final = "INITIALIZING"
FETCHING: Final = "FETCHING"
AWAIT_RESET: Final = "AWAIT_RESET"
AWAIT_VALIDATION: Final = "AWAIT_VALIDATION"

#: A position with an epoch is first set and then validated, so no arrow leads from AWAIT_RESET to AWAIT_VALIDATION.
POSITION = MachineSpec(
    name="position",
    title="Position of one partition, client side",
    states={
        INITIALIZING: ("K-SUB-10",),
        FETCHING: ("K-SUB-11", "K-SUB-04"),
        AWAIT_RESET: ("K-SUB-12",),
        AWAIT_VALIDATION: ("K-SUB-13",),
    },
    initial={INITIALIZING: ("K-SUB-02",)},
    transitions=(
        Transition("committed_found", (INITIALIZING,), FETCHING, ("K-POS-01",)),
        Transition("nothing_committed", (INITIALIZING,), AWAIT_RESET, ("K-POS-02",)),
        Transition("reset_answered", (AWAIT_RESET,), FETCHING, ("K-POS-03",)),
        Transition("out_of_range", (FETCHING,), AWAIT_RESET, ("K-POS-04",)),
        Transition("seek", (ANY,), FETCHING, ("K-POS-05",)),
        Transition("seek_to_end", (ANY,), AWAIT_RESET, ("K-POS-03",)),
        Transition("epoch_in_doubt", (FETCHING, AWAIT_VALIDATION), AWAIT_VALIDATION, ("K-POS-01", "K-POS-07")),
        Transition("epoch_confirmed", (AWAIT_VALIDATION,), FETCHING, ("K-POS-07",)),
        Transition("truncated", (AWAIT_VALIDATION,), FETCHING, ("K-POS-07",)),
        Transition("epoch_undefined", (AWAIT_VALIDATION,), AWAIT_RESET, ("K-POS-07",)),
    ),
)

MACHINES: Final = {
    spec.name: spec
    for spec in (CLASSIC_GROUP, CLASSIC_MEMBER, CONSUMER_GROUP, CONSUMER_MEMBER, CONSUMER_CLIENT, OFFSET, POSITION)
}


def build(spec: MachineSpec, model: object, *, initial: str | None = None, kind: type[Any] = Machine) -> Any:
    """Build a ``transitions`` machine of the class ``kind`` from the declaration; ``model`` gets a method per trigger.

    An illegal trigger raises ``transitions.MachineError``.
    """
    return kind(
        model=model,
        states=list(spec.states),
        initial=initial or next(iter(spec.initial)),
        transitions=[
            {"trigger": t.trigger, "source": ANY if t.sources == (ANY,) else list(t.sources), "dest": t.dest}
            for t in spec.transitions
        ],
        auto_transitions=False,
    )
