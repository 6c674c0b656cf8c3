"""Static members, revocation, commits that fail, and closing."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost_server.faults import Fault

from ...members.classic import GRACE_MS
from ..case import client_case
from ..stage import ClientRun, Stage, Unkept

_STATIC = ("--instance-id", "one")
#: more requests to join than two clients need that do not fight for a place
_MANY_JOINS = 8


@client_case("client.static.1", "K-LEAVE-03", "C-STATIC-02", leaves=False)
async def a_classic_static_member_restarts(stage: Stage) -> None:
    """The process of a static member is killed and starts again with its instance id. It is assigned the same
    partitions, and works."""
    await stage.broker()
    await _restarted(stage, "classic")


@client_case("client.static.2", "N-HB-01", "N-HB-09")
async def a_static_consumer_member_restarts(stage: Stage) -> None:
    """A static member of a consumer group closes, which tells the coordinator epoch -2, and starts again with its
    instance id. It is assigned the same partitions, and works."""
    await stage.broker()
    await _restarted(stage, "consumer")


async def _restarted(stage: Stage, protocol: str) -> None:
    first = await stage.start(*_STATIC, protocol=protocol)
    await first.settled()
    if protocol == "classic":
        await first.kill()
    else:
        await first.close()
        _require(first, bool(first.sent("ConsumerGroupHeartbeat", member_epoch=-2)), "sent no epoch -2", "epoch -2")
    again = await stage.start(*_STATIC, protocol=protocol)
    await again.assigned(4)
    names = {str(line.body.get("group_instance_id", line.body.get("instance_id"))) for line in again.joins()}
    _require(again, names == {"one"}, f"joined with the instance id {', '.join(sorted(names))}", "the instance id one")
    await again.reads()
    await stage.works(again)


@client_case("client.fence.1", "K-ERR-08", "INV-FENCE-01", "K-OFF-14", exclusive=False, leaves=False, heartbeats=False)
async def a_classic_static_member_is_fenced(stage: Stage) -> None:
    """A second process starts with the instance id of a live static member. The first is answered FENCED_INSTANCE_ID.
    It stops: it sends nothing under its old member id, and does not fight for its place."""
    await stage.broker()
    first = await stage.start(*_STATIC)
    await first.settled()
    second = await stage.start(*_STATIC)
    await second.assigned(4)

    def fenced() -> bool:
        return bool(first.refusals(ErrorCode.FENCED_INSTANCE_ID))

    def fights() -> bool:
        return len(first.joins()) + len(second.joins()) > _MANY_JOINS

    expected = "a request that is answered FENCED_INSTANCE_ID"
    await first.until(lambda: fenced() or fights(), expected, reached=True, may_end=True)
    _require(first, not fights(), f"and {second.name} took the place from each other", "that a replaced member stops")
    before = len(first.joins()) + len(second.joins())
    await first.rests(1.5 * GRACE_MS / 1000, may_end=True)  # what it sends later, it sends although it knows
    await stage.works(second)
    await first.rests(stage.session_s, may_end=True)
    more = len(first.joins()) + len(second.joins()) - before
    _require(first, more <= 2, f"and {second.name} joined {more} more times", "that a fenced member stops")


@client_case("client.fence.2", "N-ERR-04", leaves=False, heartbeats=False)
async def a_static_consumer_member_is_fenced(stage: Stage) -> None:
    """A heartbeat of a static member of a consumer group is answered FENCED_INSTANCE_ID. It stops: it sends no
    heartbeat and no commit after that."""
    await stage.broker(Fault(do="error", api="consumer_group_heartbeat", nth=5, code="FENCED_INSTANCE_ID"))
    client = await stage.start(*_STATIC, protocol="consumer")
    await client.troubled(ErrorCode.FENCED_INSTANCE_ID)
    await client.rests(stage.session_s, may_end=True)


@client_case("client.revoke.1", "K-CB-01", "K-CB-03", "K-OFF-02")
async def a_revocation_while_a_classic_member_processes(stage: Stage) -> None:
    """A second consumer joins while the application of the first processes a record. The first finishes or drops it,
    gives its partitions up before it joins again, and commits no partition that it has given up."""
    await stage.broker()
    await _revoked(stage, "classic")


@client_case("client.revoke.2", "N-REC-04", "N-REC-06", "N-HB-05", "INV-CL-05")
async def a_revocation_while_a_consumer_member_processes(stage: Stage) -> None:
    """A second consumer joins while the application of the first processes a record. The first acknowledges the
    smaller assignment only when it has given the rest up, and the second is assigned that only then."""
    await stage.broker()
    await _revoked(stage, "consumer")


async def _revoked(stage: Stage, protocol: str) -> None:
    busy = ("--processing-ms", str(round(250 * stage.session_s)))
    first = await stage.start(*busy, protocol=protocol)
    await first.settled()
    second = await stage.start(*busy, protocol=protocol)
    await second.assigned(2)
    await first.assigned(2)
    await stage.works(second)
    await stage.works(first)


@client_case("client.cooperative.1", "K-CB-06", "K-JOIN-04", "K-CB-11", "INV-CL-06")
async def two_cooperative_rounds(stage: Stage) -> None:
    """With the assignor cooperative-sticky a second consumer joins. The first keeps two partitions all the time, gives
    up two in the first round, and joins again so that the second consumer is assigned them in the next round."""
    await stage.broker()
    assignor = ("--assignor", "cooperative-sticky")
    first = await stage.start(*assignor)
    await first.settled()
    second = await stage.start(*assignor)
    await second.assigned(2)
    await first.assigned(2)
    revoked = max((len(each.get("partitions", ())) for each in first.events("revoked")), default=0)
    _require(first, revoked <= 2, f"gave up {revoked} partitions", "that it keeps two of its four partitions")
    await stage.works(first)
    await stage.works(second)


@client_case("client.cooperative.2", "K-CB-06", "K-JOIN-04")
async def three_cooperative_members(stage: Stage) -> None:
    """Three consumers with the assignor cooperative-sticky share six partitions, and then rest."""
    await stage.broker(partitions=6)
    clients = [await stage.start("--assignor", "cooperative-sticky") for _ in range(3)]
    for client in clients:
        await client.assigned(2)
    for client in clients:
        await client.reads()
    await clients[0].stays(stage.session_s)


@client_case("client.commit.1", "K-OFF-11", "K-ERR-13")
async def a_lost_answer_to_a_commit(stage: Stage) -> None:
    """The connection breaks in place of an answer to OffsetCommit. The client commits again or later."""
    await stage.broker(Fault(do="close", api="offset_commit", nth=2))
    await _commits_on(stage, "classic")


@client_case("client.commit.2", "N-CMT-06", "N-ERR-06")
async def a_lost_answer_to_a_commit_of_a_consumer_member(stage: Stage) -> None:
    """The connection breaks in place of an answer to OffsetCommit in a consumer group. The client commits again or
    later."""
    await stage.broker(Fault(do="close", api="offset_commit", nth=2))
    await _commits_on(stage, "consumer")


@client_case("client.commit.3", "K-OFF-13")
async def a_commit_with_an_illegal_generation(stage: Stage) -> None:
    """An OffsetCommit is answered ILLEGAL_GENERATION. The client joins again or continues, and commits later."""
    await stage.broker(Fault(do="error", api="offset_commit", nth=2, code="ILLEGAL_GENERATION"))
    await _commits_on(stage, "classic")


async def _commits_on(stage: Stage, protocol: str) -> None:
    client = await stage.start(protocol=protocol)
    await client.settled()
    await client.until(lambda: len(client.sent("OffsetCommit")) > 1, "a second OffsetCommit", reached=True)
    await stage.works(client)


@client_case("client.close.1", "K-LEAVE-04")
async def a_lost_answer_to_a_leave(stage: Stage) -> None:
    """The connection breaks in place of the answer to LeaveGroup. The client closes nevertheless."""
    await stage.broker(Fault(do="close", api="leave_group", nth=1))
    await (await stage.start()).settled()


@client_case("client.close.2", "K-LEAVE-04", "K-LEAVE-05")
async def a_leave_without_an_answer(stage: Stage) -> None:
    """LeaveGroup is never answered. The client closes nevertheless."""
    await stage.broker(Fault(do="lose", api="leave_group"))
    await (await stage.start()).settled()


@client_case("client.close.3", "K-LEAVE-01", "K-LEAVE-04", "K-OFF-02")
async def a_close_while_a_classic_member_processes(stage: Stage) -> None:
    """A member of a classic group closes while its application processes a record. It commits nothing after it has
    left."""
    await stage.broker()
    await _closes_busy(stage, "classic")


@client_case("client.close.4", "N-CLOSE-01", "N-HB-09")
async def a_close_while_a_consumer_member_processes(stage: Stage) -> None:
    """A member of a consumer group closes while its application processes a record. It commits nothing as a member
    after it has left."""
    await stage.broker()
    await _closes_busy(stage, "consumer")


async def _closes_busy(stage: Stage, protocol: str) -> None:
    client = await stage.start("--processing-ms", "400", protocol=protocol)
    await client.settled()


def _require(run: ClientRun, holds: bool, did: str, expected: str) -> None:
    if not holds:
        raise Unkept(run.name, f"{run.name} {did}", expected)
