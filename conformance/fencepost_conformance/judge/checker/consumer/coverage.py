"""Whether all partitions are assigned once a group is stable.

While every member is at the target's epoch with nothing to revoke, each heartbeat grants its member the free partitions
of its target (M-REC-11, M-REC-12). Suppose that a heartbeat of each member was accepted, and no member changed. Then a
partition that no member holds is in no member's target. The assignors leave no partition unassigned, so such a group is
refused (A-PROP-01). With equal subscriptions, the uniform assignor also assigns evenly (A-PROP-04).

The check skips groups whose targets may be incomplete in Kafka: with members that subscribe to nothing or to a regex
(M-TGT-06), with instance ids (M-HB-07), after a conversion (X-UP-15), or just after a change of topics.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from fencepost.protocol.consumer_messages import JOIN_EPOCH, ConsumerGroupHeartbeatRequest
from fencepost.protocol.errors import ErrorCode

from ..history import Op
from .group import Knowledge
from .members import Member, Partition
from .wrong import Wrong

_UNIFORM: Final = "uniform"

_Rest = tuple[tuple[str, int, frozenset[Partition]], ...]


@dataclass(slots=True)
class Coverage:
    """The data of the check about one group. ``changed_ms``: when topics last changed. ``plain``: nothing has happened
    that may make a target incomplete. ``uniform``: no member has asked for another assignor than the uniform one."""

    changed_ms: int = -1 << 62
    plain: bool = True
    uniform: bool = True
    _rest: _Rest = ()
    _since_ms: int = 0
    _heard: set[str] = field(default_factory=set)

    def asked(self, op: Op) -> None:
        """Note a request."""
        body = op.body
        if not isinstance(body, ConsumerGroupHeartbeatRequest):
            self.plain = self.plain and not hasattr(body, "protocols")
            return
        names, regex = body.subscribed_topic_names, body.subscribed_topic_regex
        nothing = names == () or (names is None and body.member_epoch == JOIN_EPOCH)
        self.plain = self.plain and not (nothing or regex or body.instance_id is not None)
        self.uniform = self.uniform and body.server_assignor in (None, _UNIFORM)

    def answered(self, known: Knowledge, op: Op) -> None:
        """Note an answer. Raises Wrong if the group is stable and a partition is not assigned."""
        rest = self._at_rest(known) if self.plain and known.deletions_settled(op.sent_ms) else ()
        settled_ms = self.changed_ms + known.settings.group_consumer_assignment_interval_ms + known.limits.slack_ms
        if rest != self._rest or known.now < settled_ms:
            self._rest, self._heard = rest, set()
            self._since_ms = known.now
        # Until then a newer target may be due that the assignment interval still delays (M-TGT-08).
        free_ms = self._since_ms + known.settings.group_consumer_assignment_interval_ms + known.limits.tolerance_ms
        if not rest or not isinstance(op.body, ConsumerGroupHeartbeatRequest) or op.sent_ms <= free_ms:
            return
        if getattr(op.answer, "error_code", None) is not ErrorCode.NONE:
            return  # a rejected heartbeat grants nothing
        self._heard.add(op.body.member_id)
        if self._heard >= {name for name, _, _ in rest}:
            self._whole(known, op, rest)

    def _at_rest(self, known: Knowledge) -> _Rest:
        rows = []
        for member in known.members.values():
            if known.surely_out(member.member_id):
                continue
            away = any(topic in known.topics.gone for topic, _ in member.held)
            if away or not known.surely_in(member) or not _settled(known, member):
                return ()
            rows.append((member.member_id, member.epoch, frozenset(member.held)))
        return tuple(rows)

    def _whole(self, known: Knowledge, op: Op, rest: _Rest) -> None:
        held = {each for _, _, owned in rest for each in owned}
        names = [known.members[name].names or frozenset() for name, _, _ in rest]
        for name in sorted(frozenset().union(*names)):
            topic = known.topics.ids.get(name)
            for number in range(known.topics.counts[topic] if topic is not None else 0):
                if topic is not None and (topic, number) not in held:
                    raise Wrong(
                        op, f"{name}-{number} assigned to a member", "A-PROP-01", "M-REC-12", field="assignment"
                    )
        sizes = [len(owned) for _, _, owned in rest]
        uniform = self.uniform and known.settings.group_consumer_assignors[0] == _UNIFORM
        if uniform and len(set(names)) == 1 and max(sizes) - min(sizes) > 1:
            raise Wrong(op, "shares that differ by at most one", "A-PROP-04", "A-UHOM-04", field="assignment")


def _settled(known: Knowledge, member: Member) -> bool:
    there = member.epoch == known.epochs.seen and not known.epochs.due
    return member.exact and member.regex_known and not (member.classic or member.away or member.revoking) and there
