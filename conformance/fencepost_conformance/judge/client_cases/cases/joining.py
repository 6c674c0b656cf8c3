"""Joining, alone and with others, and reading from the last commit."""

from __future__ import annotations

from fencepost_server.faults import Fault

from ..case import client_case
from ..stage import ClientRun, Stage, Unkept


@client_case("client.join.1", "K-ST-10", "K-ST-11", "K-ST-12", "K-FETCH-01", "K-LEAVE-01")
async def a_classic_member_alone(stage: Stage) -> None:
    """A consumer alone joins a classic group, is assigned all partitions, reads and commits them, and leaves when it is
    closed."""
    await stage.broker()
    client = await stage.start()
    await client.assigned(4)
    await client.settled()


@client_case("client.join.2", "N-TR-01", "N-TR-04", "N-TR-05", "N-HB-02", "N-HB-09", "K-FETCH-01")
async def a_consumer_member_alone(stage: Stage) -> None:
    """A consumer alone joins a consumer group (KIP-848), is assigned all partitions, reads and commits them, and leaves
    when it is closed."""
    await stage.broker()
    client = await stage.start(protocol="consumer")
    await client.assigned(4)
    await client.settled()


@client_case("client.join.3", "K-ERR-13", "C-JOIN-36")
async def a_lost_answer_to_a_join(stage: Stage) -> None:
    """The connection breaks in place of the answer to JoinGroup. The client joins again."""
    await stage.broker(Fault(do="close", api="join_group", nth=1))
    await (await stage.start()).settled()


@client_case("client.join.4", "N-ERR-06")
async def a_lost_answer_to_a_first_heartbeat(stage: Stage) -> None:
    """The connection breaks in place of the answer to the first ConsumerGroupHeartbeat. The client joins again."""
    await stage.broker(Fault(do="close", api="consumer_group_heartbeat", nth=1))
    await (await stage.start(protocol="consumer")).settled()


@client_case("client.join.5", "K-HB-07", "K-ERR-01")
async def a_late_answer_to_a_join(stage: Stage) -> None:
    """Each answer to JoinGroup is late, by half of the session timeout. The client waits for it."""
    await stage.broker(Fault(do="delay", api="join_group", ms=round(500 * stage.session_s)))
    await (await stage.start()).settled()


@client_case("client.join.6", "K-ERR-06", "K-CB-03", "K-JOIN-10", "INV-OWN-01")
async def a_second_classic_member(stage: Stage) -> None:
    """A second consumer joins a classic group. Both have two of the four partitions then, and both read and commit."""
    await stage.broker()
    await _shared(stage, await stage.start())


@client_case("client.join.7", "N-REC-06", "N-REC-07", "N-REC-08", "N-HB-05", "INV-KIP-01")
async def a_second_consumer_member(stage: Stage) -> None:
    """A second consumer joins a consumer group. It is assigned what the first gives up, and both read and commit."""
    await stage.broker()
    await _shared(stage, await stage.start(protocol="consumer"), protocol="consumer")


async def _shared(stage: Stage, first: ClientRun, protocol: str = "classic") -> None:
    """Let a second client join, and wait until both have their part."""
    await first.settled()
    second = await stage.start(protocol=protocol)
    for client in (second, first):
        await client.assigned(2)
    await second.reads()
    await stage.works(first)
    await stage.works(second)


@client_case("client.join.8", "K-ERR-06", "K-LEAVE-02")
async def the_second_classic_member_leaves(stage: Stage) -> None:
    """Of two consumers in a classic group one closes. The other joins again and is assigned all partitions, before the
    session of the first could end."""
    await stage.broker()
    await _left_alone(stage)


@client_case("client.join.9", "N-TR-02", "N-TR-07", "N-REC-07")
async def the_second_consumer_member_leaves(stage: Stage) -> None:
    """Of two consumers in a consumer group one closes. The other is assigned all partitions, and reads and commits."""
    await stage.broker()
    await _left_alone(stage, protocol="consumer")


async def _left_alone(stage: Stage, protocol: str = "classic") -> None:
    first = await stage.start(protocol=protocol)
    await first.settled()
    second = await stage.start(protocol=protocol)
    await second.assigned(2)
    await first.assigned(2)
    await second.close()
    await first.assigned(4)
    await stage.works(first)


@client_case("client.resume.1", "K-POS-01", "K-OFF-05")
async def a_classic_member_resumes(stage: Stage) -> None:
    """A consumer of a classic group commits and closes. The next one begins to read where the first committed."""
    await stage.broker()
    await _resumed(stage)


@client_case("client.resume.2", "K-POS-01", "N-CMT-04")
async def a_consumer_member_resumes(stage: Stage) -> None:
    """A consumer of a consumer group commits and closes. The next one begins to read where the first committed."""
    await stage.broker()
    await _resumed(stage, protocol="consumer")


async def _resumed(stage: Stage, protocol: str = "classic") -> None:
    first = await stage.start(protocol=protocol)
    await first.settled()
    await first.close()
    second = await stage.start(protocol=protocol)
    await second.reads()
    found = second.first_fetched()
    for index, offset in first.last_committed().items():
        if found.get(index, offset) != offset:
            text = f"{second.name} read partition {index} from offset {found[index]}"
            raise Unkept(second.name, text, f"offset {offset}, which {first.name} committed last")
