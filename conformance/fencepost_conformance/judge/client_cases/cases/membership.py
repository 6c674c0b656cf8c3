"""Heartbeats, and what a client does when the group no longer has it."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost_server.faults import Fault

from ..case import client_case
from ..stage import ClientRun, Stage

#: session timeouts until trouble begins: a client takes long to start on a busy machine
_START = 3.5
_HEARTBEAT_OF = {"classic": "heartbeat", "consumer": "consumer_group_heartbeat"}


@client_case("client.heartbeat.1", "K-HB-01", "K-HB-02", "K-HB-08")
async def heartbeats_of_a_classic_member(stage: Stage) -> None:
    """A consumer alone in a classic group has nothing to read. It sends heartbeats in time, and does not join
    again."""
    await stage.broker()
    await _idle(stage, await stage.start())


@client_case("client.heartbeat.2", "N-HB-06", "N-HB-07")
async def heartbeats_of_a_consumer_member(stage: Stage) -> None:
    """A consumer alone in a consumer group has nothing to read. It sends heartbeats in time, one after another, and
    does not join again."""
    await stage.broker()
    await _idle(stage, await stage.start(protocol="consumer"))


async def _idle(stage: Stage, client: ClientRun) -> None:
    await client.settled()
    await client.stays(2.5 * stage.session_s)


@client_case("client.heartbeat.3", "K-HB-06")
async def heartbeats_while_a_classic_member_processes(stage: Stage) -> None:
    """The application of a classic member takes longer than its session timeout for a record. The client sends
    heartbeats meanwhile, and stays a member."""
    await stage.broker()
    client = await stage.start("--processing-ms", str(round(1800 * stage.session_s)))
    await client.assigned(4)
    await client.reads()  # some join a second time at once
    await client.stays(2.5 * stage.session_s)


@client_case("client.heartbeat.4", "N-HB-07")
async def heartbeats_while_a_consumer_member_processes(stage: Stage) -> None:
    """The application of a member of a consumer group takes longer than the session timeout for a record. The client
    sends heartbeats meanwhile, and stays a member."""
    await stage.broker()
    client = await stage.start("--processing-ms", str(round(1800 * stage.session_s)), protocol="consumer")
    await client.assigned(4)
    await client.reads()  # some join a second time at once
    await client.stays(2.5 * stage.session_s)


@client_case("client.heartbeat.5", "K-HB-08")
async def late_answers_to_classic_heartbeats(stage: Stage) -> None:
    """Every second answer to Heartbeat is late, by less than the session timeout. The member stays."""
    await stage.broker(Fault(do="delay", api="heartbeat", every=2, ms=round(300 * stage.session_s)))
    await _idle(stage, await stage.start())


@client_case("client.heartbeat.6", "N-HB-06")
async def late_answers_to_consumer_heartbeats(stage: Stage) -> None:
    """Every second answer to ConsumerGroupHeartbeat is late, by less than the session timeout. The member waits for it
    before it sends the next one, and stays."""
    await stage.broker(Fault(do="delay", api="consumer_group_heartbeat", every=2, ms=round(300 * stage.session_s)))
    await _idle(stage, await stage.start(protocol="consumer"))


@client_case("client.heartbeat.7", "K-ERR-13")
async def a_lost_answer_to_a_classic_heartbeat(stage: Stage) -> None:
    """The connection breaks in place of an answer to Heartbeat. The client connects again, and works."""
    await stage.broker(Fault(do="close", api="heartbeat", nth=3))
    await _after_loss(stage, await stage.start(), "Heartbeat")


@client_case("client.heartbeat.8", "N-ERR-06", "N-HB-04")
async def a_lost_answer_to_a_consumer_heartbeat(stage: Stage) -> None:
    """The connection breaks in place of an answer to ConsumerGroupHeartbeat. The client connects again and sends a full
    heartbeat, and works."""
    await stage.broker(Fault(do="close", api="consumer_group_heartbeat", nth=5))
    await _after_loss(stage, await stage.start(protocol="consumer"), "ConsumerGroupHeartbeat")


@client_case("client.heartbeat.9", "N-ERR-06", "N-HB-03", "N-REC-08")
async def a_lost_answer_to_an_acknowledgement(stage: Stage) -> None:
    """The connection breaks in place of the answers to the second and third ConsumerGroupHeartbeat, with which a member
    acknowledges its assignment. The client acknowledges again, and works."""
    await stage.broker(
        Fault(do="close", api="consumer_group_heartbeat", nth=2),
        Fault(do="close", api="consumer_group_heartbeat", nth=3),
    )
    await _after_loss(stage, await stage.start(protocol="consumer"), "ConsumerGroupHeartbeat")


async def _after_loss(stage: Stage, client: ClientRun, api: str) -> None:
    await client.settled()
    await client.until(
        lambda: len(client.sent(api)) > len(client.received(api)) and len(client.sent(api)) > 4,
        "a heartbeat without an answer, and one after it",
    )
    await stage.works(client)
    await client.stays(0.5 * stage.session_s)


@client_case("client.rejoin.1", "K-ERR-04", "K-CB-02")
async def an_unknown_member_of_a_classic_group(stage: Stage) -> None:
    """A Heartbeat is answered UNKNOWN_MEMBER_ID. The client gives up its partitions, joins again, and works."""
    await _removed(stage, "classic", 3, ErrorCode.UNKNOWN_MEMBER_ID)


@client_case("client.rejoin.2", "K-ERR-05", "K-CB-02")
async def an_illegal_generation(stage: Stage) -> None:
    """A Heartbeat is answered ILLEGAL_GENERATION. The client gives up its partitions, joins again, and works."""
    await _removed(stage, "classic", 3, ErrorCode.ILLEGAL_GENERATION)


@client_case("client.rejoin.3", "K-ERR-06")
async def a_rebalance(stage: Stage) -> None:
    """A Heartbeat is answered REBALANCE_IN_PROGRESS. The client joins again with its member id, and works."""
    await _removed(stage, "classic", 3, ErrorCode.REBALANCE_IN_PROGRESS)


@client_case("client.rejoin.4", "N-TR-06", "N-ERR-02", "N-HB-08")
async def a_fenced_member_epoch(stage: Stage) -> None:
    """A ConsumerGroupHeartbeat is answered FENCED_MEMBER_EPOCH. The client gives up its partitions, joins again with
    epoch 0, and works."""
    await _removed(stage, "consumer", 5, ErrorCode.FENCED_MEMBER_EPOCH)


@client_case("client.rejoin.5", "N-TR-06", "N-ERR-02")
async def an_unknown_member_of_a_consumer_group(stage: Stage) -> None:
    """A ConsumerGroupHeartbeat is answered UNKNOWN_MEMBER_ID. The client gives up its partitions, joins again with
    epoch 0, and works."""
    await _removed(stage, "consumer", 5, ErrorCode.UNKNOWN_MEMBER_ID)


async def _removed(stage: Stage, protocol: str, nth: int, code: ErrorCode) -> None:
    kio = _HEARTBEAT_OF[protocol]
    await stage.broker(Fault(do="error", api=kio, nth=nth, code=code.name))
    client = await stage.start(protocol=protocol)
    await client.rejoins(await client.troubled(code))
    await client.assigned(4)
    await client.reads()
    await stage.works(client)
    await client.stays(0.5 * stage.session_s)


@client_case("client.rejoin.6", "K-ERR-04", "K-ERR-07")
async def an_unknown_member_that_syncs(stage: Stage) -> None:
    """SyncGroup is answered UNKNOWN_MEMBER_ID. The client joins as a new member, and works."""
    await stage.broker(Fault(do="error", api="sync_group", nth=1, code="UNKNOWN_MEMBER_ID"))
    client = await stage.start()
    await client.rejoins(await client.troubled(ErrorCode.UNKNOWN_MEMBER_ID))
    await client.settled()


@client_case("client.rejoin.7", "K-OFF-13")
async def an_unknown_member_that_commits(stage: Stage) -> None:
    """An OffsetCommit is answered UNKNOWN_MEMBER_ID, and so are the heartbeats after it. The client joins again, and
    works."""
    await stage.broker(
        Fault(do="error", api="offset_commit", nth=2, code="UNKNOWN_MEMBER_ID"),
        Fault(do="error", api="heartbeat", nth=2, code="UNKNOWN_MEMBER_ID"),
    )
    client = await stage.start()
    await client.rejoins(await client.troubled(ErrorCode.UNKNOWN_MEMBER_ID))
    await client.assigned(4)
    await stage.works(client)


@client_case("client.session.1", "K-HB-02", "K-ERR-04", "C-TMR-07", heartbeats=False)
async def the_session_of_a_classic_member_ends(stage: Stage) -> None:
    """The coordinator rejects all heartbeats for longer than the session timeout, and so removes the member. The client
    joins again, and works."""
    await _expired(stage, "classic")


@client_case("client.session.2", "N-ERR-01", "N-ERR-02", "N-TR-06", heartbeats=False)
async def the_session_of_a_consumer_member_ends(stage: Stage) -> None:
    """The coordinator rejects all heartbeats for longer than the session timeout, and so removes the member. The client
    joins again with epoch 0, and works."""
    await _expired(stage, "consumer")


async def _expired(stage: Stage, protocol: str) -> None:
    kio = _HEARTBEAT_OF[protocol]
    begin = round(_START * stage.session_s * 1000)
    until = begin + round(1000 * stage.session_s) + 2_000
    trouble = Fault(do="error", api=kio, after_ms=begin, until_ms=until, code="COORDINATOR_NOT_AVAILABLE")
    await stage.broker(trouble)
    client = await stage.start(protocol=protocol)
    await client.settled()
    stage.require_before(begin)
    before = len(client.joins())
    await client.until(lambda: len(client.joins()) > before, "a member that joins again when its session has ended")
    await client.assigned(4)
    await stage.works(client)


@client_case("client.coordinator.1", "K-ERR-03", "K-FIND-01", heartbeats=False)
async def the_coordinator_of_a_classic_group_moves(stage: Stage) -> None:
    """The coordinator is not available for a session timeout, and is loaded again. The client finds it again, and
    works."""
    await _moved(stage, "classic")


@client_case("client.coordinator.2", "N-ERR-01", "K-FIND-01", heartbeats=False)
async def the_coordinator_of_a_consumer_group_moves(stage: Stage) -> None:
    """The coordinator is not available for a session timeout, and is loaded again. The client finds it again, and
    works."""
    await _moved(stage, "consumer")


async def _moved(stage: Stage, protocol: str) -> None:
    # so long that also a client meets it that sends heartbeats only between fetches, which may wait for 5 s
    away_ms = round(1000 * stage.session_s)
    await stage.broker(Fault(do="move", ms=round(_START * stage.session_s * 1000), for_ms=away_ms, times=1))
    client = await stage.start(protocol=protocol)
    await client.settled()
    await client.troubled(
        ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    )
    await stage.works(client)
