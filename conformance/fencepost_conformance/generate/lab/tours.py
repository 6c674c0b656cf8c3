"""Tours: sessions with text, along the five source articles of the rule book (``docs/rules/11-articles.md``).

A chapter has a text, the actions that lead to it, and a claim. A test plays every tour and checks each claim, so a text
does not promise what the page does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .journal import Message
from .lab import Lab
from .start import GROUP

Actions = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Chapter:
    """A chapter. ``holds``: whether a session after its actions shows what the text says."""

    text: str
    actions: Actions
    holds: Callable[[Lab], bool]


@dataclass(frozen=True, slots=True)
class Tour:
    """A tour. ``articles``: the statements of the articles that it shows. ``start``: the differences from a new
    session."""

    name: str
    title: str
    articles: str
    chapters: tuple[Chapter, ...]
    start: Mapping[str, Any] = field(default_factory=dict)


# --- what the claims look at ---


def _state(lab: Lab) -> str:
    group = lab.core.consumer_groups.get(GROUP) or lab.core.groups.get(GROUP)
    return "" if group is None else group.state.value


def _kind(lab: Lab) -> str:
    return "consumer" if GROUP in lab.core.consumer_groups else "classic" if GROUP in lab.core.groups else ""


def _classic_members(lab: Lab) -> int:
    """Return how many classic members the consumer group has; -1 if it is not a consumer group."""
    group = lab.core.consumer_groups.get(GROUP)
    return -1 if group is None else sum(member.classic is not None for member in group.members)


def _share(lab: Lab, *names: str) -> list[int]:
    """Return how many partitions each client owns."""
    return [sum(name in owners for owners in lab.owners().values()) for name in names]


def _unowned(lab: Lab) -> int:
    return sum(not owners for owners in lab.owners().values())


def _errors(lab: Lab, api: str) -> set[str]:
    """Return the errors in the answers of an API."""
    return {_error(message) for message in lab.journal.messages if type(message.body).__name__ == f"{api}Response"}


def _error(message: Message) -> str:
    code = getattr(message.body, "error_code", None)
    return "" if code is None else str(code.name)


def _said(lab: Lab, text: str) -> bool:
    return any(text in row.text for row in lab.journal.rows)


# --- the actions ---


def _start(name: str, protocol: str, *, static: bool = False) -> dict[str, Any]:
    return {"do": "start", "client": name, "protocol": protocol, **({"static": True} if static else {})}


def _run(ms: int) -> dict[str, Any]:
    return {"do": "run", "ms": ms}


def _group_of(protocol: str, *names: str, static: bool = False) -> Actions:
    return (*(_start(name, protocol, static=static) for name in names), _run(15_000))


_NEW: Final = Tour(
    "new-consumer",
    "A new consumer joins",
    "S0-01, S0-02, S0-10, S0-12; S3-07, S3-08",
    (
        Chapter(
            "The first client starts. It has no member id, so the coordinator answers its JoinGroup with "
            "MEMBER_ID_REQUIRED and an id. The client sends JoinGroup again with that id. The coordinator now waits: a "
            "new group gives others the initial delay to join.",
            (_start("c1", "eager"), _run(500)),
            lambda lab: _state(lab) == "PreparingRebalance" and "MEMBER_ID_REQUIRED" in _errors(lab, "JoinGroup"),
        ),
        Chapter(
            "The delay is over. The answer to JoinGroup names the generation and the leader, and gives the list of "
            "members to the leader only. The leader runs the assignor and sends the assignment with SyncGroup. The "
            "group is Stable, and c1 owns all partitions.",
            (_run(1_000),),
            lambda lab: _state(lab) == "Stable" and _share(lab, "c1") == [6],
        ),
        Chapter(
            "A second client joins. The group goes to PreparingRebalance. Its JoinGroup waits until c1 joins again.",
            (_run(2_500), _start("c2", "eager"), _run(200)),
            lambda lab: _state(lab) == "PreparingRebalance" and _share(lab, "c1", "c2") == [6, 0],
        ),
        Chapter(
            "c1 learns of the rebalance from the answer to its heartbeat: REBALANCE_IN_PROGRESS. It commits, revokes "
            "its partitions and joins again. Then both get three partitions.",
            (_run(4_000),),
            lambda lab: "REBALANCE_IN_PROGRESS" in _errors(lab, "Heartbeat") and _share(lab, "c1", "c2") == [3, 3],
        ),
    ),
)

_EAGER: Final = Tour(
    "stop-the-world",
    "Stop-the-world: an eager rebalance",
    "S3-16, S3-17; S4-13",
    (
        Chapter(
            "Two eager clients share six partitions.",
            _group_of("eager", "c1", "c2"),
            lambda lab: _share(lab, "c1", "c2") == [3, 3],
        ),
        Chapter(
            "A third client starts. Each client that hears of the rebalance revokes everything before it joins again. "
            "At this moment no partition has an owner: all wait until the last client has joined and synced.",
            (_start("c3", "eager"), _run(1_370)),
            lambda lab: _unowned(lab) == 6,
        ),
        Chapter(
            "All three have joined. Partitions that stay with their client were given up and taken back: the counter "
            "shows how many. Press Compare protocols to see the same script under the others.",
            (_run(8_000),),
            lambda lab: _share(lab, "c1", "c2", "c3") == [2, 2, 2] and lab.ownership.returned > 0,
        ),
    ),
)

_COOPERATIVE: Final = Tour(
    "cooperative",
    "A cooperative rebalance",
    "S3-18, S3-19; S4-14, S4-15",
    (
        Chapter(
            "Two clients with the cooperative-sticky assignor share six partitions.",
            _group_of("cooperative", "c1", "c2"),
            lambda lab: _share(lab, "c1", "c2") == [3, 3],
        ),
        Chapter(
            "A third client starts. The clients join again and keep their partitions: JoinGroup names the owned ones. "
            "The leader gives c3 nothing in this round. It only takes away what must move.",
            (_start("c3", "cooperative"), _run(2_600)),
            lambda lab: _share(lab, "c1", "c2", "c3") == [2, 2, 0],
        ),
        Chapter(
            "The clients that revoked something join once more, and the second round assigns it to c3. Only the "
            "partitions that moved were ever without an owner.",
            (_run(8_000),),
            lambda lab: _share(lab, "c1", "c2", "c3") == [2, 2, 2] and lab.ownership.returned == 0,
        ),
    ),
)

_STATIC: Final = Tour(
    "static",
    "Static membership",
    "S3-20, S3-22; S4-16, S4-17",
    (
        Chapter(
            "Two static clients share six partitions: each has an instance id.",
            _group_of("eager", "c1", "c2", static=True),
            lambda lab: _share(lab, "c1", "c2") == [3, 3],
        ),
        Chapter(
            "c2 stops. A static member sends no LeaveGroup, so the coordinator still counts it. Its partitions are "
            "without an owner, and nothing moves.",
            ({"do": "stop", "client": "c2"}, _run(3_000)),
            lambda lab: _unowned(lab) == 3 and _state(lab) == "Stable",
        ),
        Chapter(
            "c2 is back before its session ends. It gets a new member id and its old assignment, without a rebalance: "
            "the generation is the same, and c1 never stopped.",
            (_start("c2", "eager", static=True), _run(3_000)),
            lambda lab: _share(lab, "c1", "c2") == [3, 3] and lab.ownership.moved == 0,
        ),
        Chapter(
            "c2 crashes and stays away. Its partitions stay unread until the session ends after 10 s. Then the group "
            "rebalances, and c1 owns everything. A long session makes restarts cheap and failures expensive.",
            ({"do": "crash", "client": "c2"}, _run(18_000)),
            lambda lab: _share(lab, "c1") == [6],
        ),
    ),
)

_POLL: Final = Tour(
    "poll-interval",
    "The poll interval is exceeded",
    "S1-12; S4-09, S4-12, S4-19",
    (
        Chapter(
            "Two clients share six partitions. Heartbeats have their own thread, so the coordinator sees a healthy "
            "client even while its program is stuck.",
            _group_of("eager", "c1", "c2"),
            lambda lab: _share(lab, "c1", "c2") == [3, 3],
        ),
        Chapter(
            "The program of c2 freezes. For 20 s its heartbeats continue, and its partitions are not read.",
            ({"do": "freeze", "client": "c2", "ms": 40_000}, _run(15_000)),
            lambda lab: _share(lab, "c1", "c2") == [3, 3] and lab.client("c2").busy_until > lab.now,
        ),
        Chapter(
            "The poll interval has passed. The heartbeat thread sends LeaveGroup, and the group rebalances without c2. "
            "The program of c2 does not know yet: it still believes to own its partitions, so they have two owners.",
            (_run(12_000),),
            lambda lab: _share(lab, "c1", "c2") == [6, 3],
        ),
        Chapter(
            "The program of c2 wakes up and polls. It learns that its partitions are lost, and joins again as a new "
            "member.",
            (_run(25_000),),
            lambda lab: _share(lab, "c1", "c2") == [3, 3] and _said(lab, "listener: lost"),
        ),
    ),
)

_STORM: Final = Tour(
    "storm",
    "A rebalance storm",
    "S4-20; SCN-STORM-01",
    (
        Chapter(
            "Three clients share six partitions. The poll interval is 6 s.",
            _group_of("eager", "c1", "c2", "c3"),
            lambda lab: _share(lab, "c1", "c2", "c3") == [2, 2, 2],
        ),
        Chapter(
            "Every program now needs 9 s for the records of a poll. Each client leaves when its poll interval has "
            "passed, and joins again at its next poll, which makes the others revoke and join, too.",
            (
                *({"do": "slow", "client": name, "ms": 9_000} for name in ("c1", "c2", "c3")),
                _run(30_000),
            ),
            lambda lab: lab.core.groups[GROUP].generation_id >= 4,
        ),
        Chapter(
            "The storm does not end by itself: the generation keeps growing, and records are processed again and "
            "again.",
            (_run(60_000),),
            lambda lab: lab.core.groups[GROUP].generation_id >= 8 and lab.repeated > 0,
        ),
        Chapter(
            "The programs are quick again, and the group settles.",
            (
                *({"do": "slow", "client": name, "ms": 0} for name in ("c1", "c2", "c3")),
                _run(40_000),
            ),
            lambda lab: _state(lab) == "Stable" and _share(lab, "c1", "c2", "c3") == [2, 2, 2],
        ),
    ),
    {"poll_interval_ms": 6_000},
)

_RECONCILIATION: Final = Tour(
    "reconciliation",
    "KIP-848: reconciliation",
    "S2-01, S2-06, S2-07, S2-08",
    (
        Chapter(
            "A KIP-848 client joins with a heartbeat at epoch 0. It made its member id itself. The coordinator "
            "computes the target, and the answer contains epoch and assignment: one round trip.",
            (_start("c1", "consumer"), _run(3_000)),
            lambda lab: _kind(lab) == "consumer" and _share(lab, "c1") == [6],
        ),
        Chapter(
            "c2 joins. The target gives it three partitions, but c1 still owns them, so c2 gets none yet. The group is "
            "Reconciling.",
            (_start("c2", "consumer"), _run(100)),
            lambda lab: _share(lab, "c1", "c2") == [6, 0] and _state(lab) == "Reconciling",
        ),
        Chapter(
            "The next heartbeat of c1 is answered with its smaller assignment. c1 commits, revokes the partitions, and "
            "confirms that with a heartbeat. It never stops reading the others.",
            (_run(2_000),),
            lambda lab: _share(lab, "c1", "c2") == [3, 0] and _said(lab, "listener: revoked 3 4 5"),
        ),
        Chapter(
            "The partitions are free, and the next heartbeat of c2 gets them. No client waited for another one at a "
            "barrier.",
            (_run(3_000),),
            lambda lab: _share(lab, "c1", "c2") == [3, 3] and _state(lab) == "Stable",
        ),
    ),
)

_ROLL: Final = Tour(
    "roll",
    "A roll from classic to consumer, and back",
    "S2-12, S2-13",
    (
        Chapter(
            "Two classic clients with the cooperative assignor share six partitions.",
            _group_of("cooperative", "c1", "c2"),
            lambda lab: _kind(lab) == "classic" and _share(lab, "c1", "c2") == [3, 3],
        ),
        Chapter(
            "c1 restarts with the protocol of KIP-848. Its first heartbeat converts the group: it is a consumer group "
            "now, and c2 is a classic member of it.",
            ({"do": "stop", "client": "c1"}, _run(6_000), _start("c1", "consumer"), _run(10_000)),
            lambda lab: _kind(lab) == "consumer" and _share(lab, "c1", "c2") == [3, 3],
        ),
        Chapter(
            "c2 restarts, too. All members use KIP-848.",
            ({"do": "stop", "client": "c2"}, _run(6_000), _start("c2", "consumer"), _run(10_000)),
            lambda lab: _classic_members(lab) == 0 and _share(lab, "c1", "c2") == [3, 3],
        ),
        Chapter(
            "The roll back: c1 restarts with the classic protocol. The group stays a consumer group while c2 is in it.",
            ({"do": "stop", "client": "c1"}, _run(6_000), _start("c1", "cooperative"), _run(10_000)),
            lambda lab: _classic_members(lab) == 1 and _share(lab, "c1", "c2") == [3, 3],
        ),
        Chapter(
            "c2 restarts with the classic protocol. No member of KIP-848 is left, so the group is classic again.",
            ({"do": "stop", "client": "c2"}, _run(6_000), _start("c2", "cooperative"), _run(15_000)),
            lambda lab: _kind(lab) == "classic" and _share(lab, "c1", "c2") == [3, 3],
        ),
    ),
)

_FAIL_OVER: Final = Tour(
    "fail-over",
    "The coordinator moves",
    "S3-05, S3-06, S3-13",
    (
        Chapter(
            "Two KIP-848 clients share six partitions. The group's state is in a log, which another broker can load.",
            _group_of("consumer", "c1", "c2"),
            lambda lab: _share(lab, "c1", "c2") == [3, 3],
        ),
        Chapter(
            "The coordinator is lost. Requests are answered with NOT_COORDINATOR, and the clients look for the new "
            "one. They keep their partitions and read on.",
            ({"do": "move", "ms": 3_000}, _run(2_900)),
            lambda lab: not lab.broker.active
            and _share(lab, "c1", "c2") == [3, 3]
            and "NOT_COORDINATOR" in _errors(lab, "ConsumerGroupHeartbeat"),
        ),
        Chapter(
            "Another broker has loaded the log. It knows the members and their epochs, so the next heartbeats are "
            "accepted. Nothing moved.",
            (_run(12_000),),
            lambda lab: lab.broker.leader_epoch == 2 and _state(lab) == "Stable" and _share(lab, "c1", "c2") == [3, 3],
        ),
        Chapter(
            "Offsets are in the same log. A client that starts later gets them from the new coordinator.",
            ({"do": "crash", "client": "c1"}, {"do": "crash", "client": "c2"}, _run(15_000), _start("c3", "consumer"),
             _run(4_000)),
            lambda lab: _share(lab, "c3") == [6] and all(
                position > 0 for position in lab.client("c3").positions.values()
            ),
        ),
    ),
)  # fmt: skip

TOURS: Final[Mapping[str, Tour]] = {
    tour.name: tour for tour in (_NEW, _EAGER, _COOPERATIVE, _STATIC, _POLL, _STORM, _RECONCILIATION, _ROLL, _FAIL_OVER)
}
