"""The join loop of a poll: join prepare, JoinGroup, join complete (rule book, 8.5; ``AC.joinGroupIfNeeded``)."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import JoinGroupRequest, Protocol

from ..machines import M_STABLE
from .answers import AT_ONCE
from .draft import MemberDraft
from .outputs import Commit, FindCoordinator
from .state import NO_GENERATION, Joined

_AT_ONCE = tuple(error.name for error in AT_ONCE)


def poll(d: MemberDraft) -> None:
    """Poll: steps 3 to 5 of K-POLL-01. Raises ``Thrown`` with an exception for the application."""
    d.look_at_metadata()
    if not d.now.topics:
        return  # K-HB-10: a failure of the heartbeat thread waits as well
    if d.now.failure:
        d.rule("K-HB-10")
        failure = d.now.failure
        d.set(failure="")
        d.fail(failure)
    if not ensure_coordinator(d):
        return
    d.set(thread=True)  # K-HB-01
    while rejoin_needed(d):
        if not ensure_coordinator(d):
            return
        if d.now.prepare:
            d.set(prepare=False)  # before the callbacks, so their exceptions do not repeat them (K-CB-09)
            if not prepare(d):
                d.set(prepare=True)
                return
        if not d.now.joining:
            send_join(d)
            return
        if d.now.joined is None:
            return
        if not ended(d, d.now.joined):
            return


def ensure_coordinator(d: MemberDraft) -> bool:
    """Look for the coordinator if it is unknown (K-FIND-01). Returns whether it is known."""
    if d.now.coordinator:
        return True
    if not d.now.looking:
        d.rule("K-FIND-01")
        d.set(looking=True)
        d.outputs.append(FindCoordinator())
    return False


def rejoin_needed(d: MemberDraft) -> bool:
    """Return whether a rejoin is needed (K-JOIN-01…03, in the order of K-JOIN-18)."""
    now = d.now
    if now.watched is not None and now.watched != now.snapshot:
        d.rule("K-JOIN-02")
        _ask(d, "cached metadata has changed")
        return True
    if now.joined_topics is not None and now.joined_topics != now.topics:
        d.rule("K-JOIN-03")
        _ask(d, "the subscription has changed")
        return True
    return now.rejoin or now.joining


def _ask(d: MemberDraft, reason: str) -> None:
    """Request a rejoin, with this reason if none was requested before (K-JOIN-18)."""
    if not d.now.rejoin:
        d.request_rejoin(reason)


def prepare(d: MemberDraft) -> bool:
    """Prepare a join: commit and call the listener (K-CB-01…04). Returns False while it waits for the commit."""
    if not _committed(d):
        return False
    d.set(commit="")
    generation, owned = d.now.generation, d.now.owned
    went_well = True
    if generation.id == NO_GENERATION or not generation.member_id:
        if owned:
            d.rule("K-CB-02")
            went_well = d.call("lost", owned)
            d.set(owned=frozenset())
    elif not d.config.cooperative:
        d.rule("K-CB-03")
        went_well = d.call("revoked", owned)
        d.set(owned=frozenset())
    else:
        dropped = frozenset(partition for partition in owned if partition[0] not in d.now.topics)
        if dropped:
            d.rule("K-CB-04")
            went_well = d.call("revoked", dropped)
            d.set(owned=owned - dropped)
    d.set(leads=False, group_topics=frozenset())
    if not went_well:
        d.rule("K-CB-09")
        d.fail("KafkaException")
    return True


def _committed(d: MemberDraft) -> bool:
    """Commit the positions before the rebalance; only a retriable failure holds it up (K-CB-01)."""
    if d.now.commit == "waiting":
        return False
    if d.now.commit == "done" or not (d.config.auto_commit and d.now.coordinator and d.now.owned):
        return True
    if d.now.state != M_STABLE:
        return True  # K-OFF-02: not sent, and the resulting error is not retriable
    d.rule("K-CB-01")
    generation = d.now.generation
    d.outputs.append(Commit(d.number("commit"), generation.id, generation.member_id, d.now.owned))
    d.set(commit="waiting")
    return False


def send_join(d: MemberDraft) -> None:
    """Send the JoinGroup (K-ST-10, K-JOIN-12). Without join prepare, old partitions go with the new generation
    (K-ERR-16, K-ERR-17)."""
    d.rule("K-ST-10", "K-JOIN-12")
    d.transition("send_join")
    config, generation = d.config, d.now.generation
    d.set(joining=True, joined=None, joined_topics=d.now.topics)
    d.send(
        "join",
        JoinGroupRequest(
            config.group_id,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.rebalance_timeout_ms,
            member_id=generation.member_id,
            group_instance_id=config.instance_id,
            protocol_type=config.protocol_type,
            protocols=tuple(
                Protocol(name, config.codec.subscription(name, d.now.topics, d.now.owned, generation.id))
                for name in config.protocols
            ),
            reason=d.now.reason or None,
        ),
    )


def ended(d: MemberDraft, joined: Joined) -> bool:
    """End the join. Returns whether the loop continues."""
    if joined.error:
        d.set(joining=False, joined=None)
        d.request_rejoin(f"rebalance failed due to {joined.error}")
        if joined.error in _AT_ONCE:
            d.rule("K-ERR-14")
            return True
        if not joined.retriable:
            d.fail(joined.error)
        d.rule("K-ERR-14")
        return False  # back-off: the next poll continues
    if d.now.generation.is_reset or d.now.state != M_STABLE:
        d.rule("K-ST-16")
        d.set(joining=False, joined=None)
        d.reset("the generation was reset before the join was complete", keep_id=False)
        return True
    complete(d, joined.assignment)
    d.set(joining=False, joined=None, prepare=True)
    return True


def complete(d: MemberDraft, data: bytes) -> None:
    """Complete the join (K-CB-05, 06, 08, 13). If a listener throws, the next poll completes it again (K-CB-09)."""
    if not d.now.leads and d.now.watched is not None:
        d.rule("K-JOIN-02")  # a former leader watches until here
        d.set(watched=None)
    try:
        assigned = d.config.codec.assignment(data)
    except ValueError:
        d.rule("K-JOIN-14")
        d.fail("IllegalStateException")
        return
    if any(topic not in d.now.topics for topic, _ in assigned):
        d.rule("K-CB-08", "K-JOIN-04")
        d.request_rejoin("received assignments do not match the current subscription")
        return
    owned = d.now.owned
    went_well = True
    if d.config.cooperative and owned - assigned:
        d.rule("K-CB-06", "K-JOIN-04")
        went_well = d.call("revoked", owned - assigned)
        d.request_rejoin("need to revoke partitions and re-join")
    d.rule("K-CB-05", "K-CB-13")
    d.set(owned=assigned)
    went_well &= d.call("assigned", assigned - owned)
    if not went_well:
        d.rule("K-CB-09")
        d.fail("KafkaException")


def found(d: MemberDraft, error: ErrorCode) -> None:
    """End the look-up (K-FIND-01)."""
    d.set(looking=False, coordinator=error is ErrorCode.NONE)
    if error is not ErrorCode.NONE:
        d.fail(error.name)
