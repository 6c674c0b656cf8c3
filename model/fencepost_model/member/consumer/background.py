"""A turn of the background: coordinator, poll interval, leave, heartbeat, reconciliation (8.9–8.11)."""

from __future__ import annotations

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, TopicPartitions

from ...machines import ACKNOWLEDGING, JOINING, LEAVING, PREPARE_LEAVING, RECONCILING, SETTLED
from ..inputs import CloseOption
from ..outputs import Commit, Send
from .draft import ClientDraft
from .state import Local, SentFields, Task, Work


def run(d: ClientDraft) -> None:
    """Work until nothing is left to do."""
    while _one(d):
        pass


def _one(d: ClientDraft) -> bool:
    now = d.now
    if now.state == LEAVING and not now.coordinator:
        d.rule("N-TR-12")
        d.transition("left")
        d.left()
        return True
    if not now.coordinator:
        return reconcile(d, polled=False)
    if now.state == LEAVING:
        remains = now.option is CloseOption.REMAIN_IN_GROUP and d.config.instance_id is None and not now.expired
        if remains and now.in_flight is not None and not d.variant.remaining_member_is_silent:
            d.rule("N-HB-09")  # it leaves as others acknowledge: with nothing in flight (N-HB-06)
            return reconcile(d, polled=False)
        leave(d)
        return True
    if now.state == ACKNOWLEDGING and now.in_flight is None:
        heartbeat(d)
        return True
    held = now.failing and d.variant.joining_waits_for_backoff  # N-ERR-03
    if now.state == JOINING and now.in_flight is None and not held:
        heartbeat(d)
        return True
    if now.due and now.in_flight is None and now.state in (RECONCILING, SETTLED, PREPARE_LEAVING):
        heartbeat(d)
        return True
    return reconcile(d, polled=False)


# ---- heartbeats -----------------------------------------------------------------------------------------------------


def heartbeat(d: ClientDraft) -> None:
    """Send a heartbeat (N-HB-01…05)."""
    d.rule("N-HB-01", "N-HB-02", "N-HB-06")
    if d.now.regex is not None and d.config.version == 0:
        d.fatal("UNSUPPORTED_VERSION")
        return
    request = d.number()
    d.set(in_flight=request)
    body = _body(d)
    d.outputs.append(Send(request, body))
    if d.now.state == ACKNOWLEDGING:
        d.rule("N-TR-05")
        d.transition("acknowledged" if d.now.current == d.now.target else "acknowledged_part")


def _body(d: ClientDraft) -> ConsumerGroupHeartbeatRequest:
    config, now, sent_fields = d.config, d.now, d.now.sent_fields
    joining = now.state == JOINING
    topics: tuple[str, ...] | None = None
    if joining or now.topics != sent_fields.topics:
        topics = tuple(sorted(now.topics))
    regex = None
    if now.regex is not None and (joining or now.regex != sent_fields.regex):
        regex = now.regex
    elif now.regex is None and sent_fields.regex not in (None, ""):
        regex = ""
    owned = None
    if joining or not sent_fields.owned_sent or now.current != sent_fields.owned:
        d.rule("N-HB-03")
        rows: dict[bytes, list[int]] = {}
        all_of_it = now.current.partitions if now.current else frozenset()
        if now.epoch >= 0 and d.variant.reports_pending_partitions:
            d.rule("N-HB-05")
            # Partitions that the member may own before the answer: a gap in the list would give them away.
            all_of_it |= now.had | (now.target.partitions if now.target else frozenset())
            if now.work is not None and not now.work.stale:
                all_of_it |= now.work.local.partitions
        for topic, partition in sorted(all_of_it):
            rows.setdefault(topic, []).append(partition)
        owned = tuple(TopicPartitions(topic, tuple(partitions)) for topic, partitions in rows.items())
    remembered = now.regex if now.regex is not None else ("" if regex == "" else None)
    d.set(sent_fields=SentFields(True, now.topics, remembered, True, now.current, True))
    return ConsumerGroupHeartbeatRequest(
        config.group_id,
        member_id=config.member_id,
        member_epoch=now.epoch,
        instance_id=config.instance_id,
        rack_id=config.rack_id if joining and d.variant.sends_rack else None,
        rebalance_timeout_ms=config.rebalance_timeout_ms if joining or not sent_fields.timeout else -1,
        subscribed_topic_names=topics,
        subscribed_topic_regex=regex,
        server_assignor=config.server_assignor if joining or not sent_fields.assignor else None,
        topic_partitions=owned,
    )


def leave_epoch(d: ClientDraft) -> int:
    """Return the epoch of a leave (N-HB-09). A leave at the poll interval uses the default, whatever option a running
    close has."""
    static = d.config.instance_id is not None
    return -2 if static and (d.now.expired or d.now.option is not CloseOption.LEAVE_GROUP) else -1


def leave(d: ClientDraft) -> None:
    """Send the leave heartbeat, unless the option says to remain silently (N-TR-08, N-HB-09)."""
    d.rule("N-TR-08", "N-HB-09")
    static, remain = d.config.instance_id is not None, d.now.option is CloseOption.REMAIN_IN_GROUP
    silent = d.variant.remaining_static_is_silent if static else d.variant.remaining_member_is_silent
    if remain and silent and not d.now.expired:
        d.transition("left")
        d.left()
        return
    request = d.number()
    d.outputs.append(Send(request, _body(d)))
    late = d.now.late if d.now.in_flight is None else d.now.late | {d.now.in_flight}
    if d.now.expired:
        # N-TR-09: its answer is ignored, and nothing is in flight any more.
        d.set(
            ignored=d.now.ignored | {request},
            late=late,
            in_flight=None,
            sent_fields=SentFields(),
            failing=False,
            due=True,
        )
        d.transition("left_stale")
        if not d.give_up("lost", "stale"):
            d.release()
            if d.now.back:
                d.join("poll_again")
    else:
        d.set(leave_request=request, in_flight=request, late=late)
        d.transition("left")


def expire(d: ClientDraft) -> None:
    """Leave because the poll interval is over (N-TR-09)."""
    d.rule("N-TR-09")
    d.transition("leave")
    d.set(expired=True, back=False, current=None)
    d.set(epoch=leave_epoch(d), known_member=True)
    d.transition("released")


# ---- reconciliation -------------------------------------------------------------------------------------------------


def reconcile(d: ClientDraft, *, polled: bool) -> bool:
    """Begin or decide a reconciliation (N-REC-01…04). Returns whether it did."""
    now = d.now
    if now.state != RECONCILING or now.work is not None or now.target is None or now.target == now.current:
        return False
    names = dict(now.cache) | dict(now.known)
    found = {topic: names[topic] for topic, _ in now.target.partitions if topic in names}
    d.set(cache=frozenset(found.items()))  # N-REC-02
    resolved = frozenset(each for each in now.target.partitions if each[0] in found)
    local = Local(now.target.epoch, resolved)
    wanted = frozenset((found[topic], partition) for topic, partition in resolved)
    has_it = now.owned == wanted or not d.variant.repairs_failed_assignment
    if now.current is not None and now.current.partitions == resolved and has_it:
        d.rule("N-REC-03")
        if now.current == local and d.variant.acknowledges_part_once:
            return False
        d.set(current=local)
        d.unblock()
        d.transition("reconciled")
        return True
    gone = now.owned - wanted
    if not polled:
        may = not d.config.auto_commit and (d.variant.background_revokes or not gone)
        if not may:
            return False
    d.rule("N-REC-01")
    d.set(work=Work(local, wanted, gone), blocked=now.blocked | gone)  # N-REC-04
    if d.config.auto_commit and now.owned:
        commit(d)
    else:
        revoke(d)
    return True


def commit(d: ClientDraft) -> None:
    work = d.now.work
    assert work is not None
    d.rule("N-REC-04")
    request = d.number()
    d.set(work=work._replace(stage="commit", commit=request))
    d.outputs.append(Commit(request, d.now.epoch if d.now.epoch > 0 else -1, d.config.member_id, d.now.owned))


def committed(d: ClientDraft, request: int, *, again: bool) -> None:
    """End the commit. Its failure does not stop the reconciliation (N-REC-04)."""
    work = d.now.work
    if work is None or work.stage != "commit" or work.commit != request:
        return
    if d.aborted:
        d.rule("N-REC-05")
        d.set(work=None)
    elif again:
        d.set(work=work._replace(stage="retry", commit=-1))
    else:
        revoke(d)


def commit_again(d: ClientDraft) -> None:
    work = d.now.work
    if work is not None and work.stage == "retry":
        if d.aborted:
            d.set(work=None)
        else:
            commit(d)


def revoke(d: ClientDraft) -> None:
    work = d.now.work
    assert work is not None
    d.set(work=work._replace(stage="revoke"))
    if work.gone and d.config.listens:
        d.rule("N-REC-06")
        d.set(queue=(*d.now.queue, Task("revoked", work.gone, "revoke")))
    else:
        assign(d)


def assign(d: ClientDraft) -> None:
    """Ask the application's thread to replace the assignment (N-REC-07)."""
    work = d.now.work
    assert work is not None
    if d.aborted:
        d.rule("N-REC-05")
        d.set(work=None)
        return
    d.set(work=work._replace(stage="assign"))
    added = work.names - d.now.owned
    if not d.variant.poll_replaces_assignment:
        replace(d)
        if not d.config.listens:
            d.adopt()
            return
    d.set(queue=(*d.now.queue, Task("assigned", added, "assign")))


def replace(d: ClientDraft) -> None:
    work = d.now.work
    assert work is not None
    d.rule("N-REC-07")
    d.set(
        fresh=(d.now.fresh | (work.names - d.now.owned)) & work.names,
        blocked=d.now.blocked & work.names,
        owned=work.names,
        app_owned=work.names,
        had=work.local.partitions,
    )
