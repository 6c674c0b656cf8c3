"""Three workers share six partitions of work. One after the other leaves, and the rest take over its partitions.

Run it with ``python examples/embed.py``. It needs only Fencepost and asyncio.
"""

import asyncio
import json

from fencepost import ErrorCode, GroupBroker, MemoryStore, Settings
from fencepost.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupMember,
    LeaveGroupRequest,
    Protocol,
    SyncGroupAssignment,
    SyncGroupRequest,
)

GROUP, KIND, PLAN = "orders", "workers", (Protocol("even", b""),)


async def work(groups: GroupBroker, name: str, leaving: asyncio.Event) -> None:
    member = ""
    while not leaving.is_set():
        asked = JoinGroupRequest(
            GROUP,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id=member,
            protocol_type=KIND,
            protocols=PLAN,
        )
        joined = await groups.join(asked, client_id=name)
        member = joined.member_id  # the first answer, MEMBER_ID_REQUIRED, only gives the id
        if joined.error_code is not ErrorCode.NONE:
            continue
        generation, rows = joined.generation_id, joined.members  # rows are empty unless this worker leads
        parts = [json.dumps(list(range(6)[place :: len(rows)])).encode() for place in range(len(rows))]
        shares = tuple(SyncGroupAssignment(row.member_id, part) for row, part in zip(rows, parts, strict=True))
        synced = await groups.sync(
            SyncGroupRequest(
                GROUP,
                generation_id=generation,
                member_id=member,
                protocol_type=KIND,
                protocol_name="even",
                assignments=shares,
            )
        )
        if synced.error_code is not ErrorCode.NONE:
            continue
        print(f"generation {generation}: {name} works on {json.loads(synced.assignment)}", flush=True)
        while not leaving.is_set():
            await asyncio.sleep(0.02)
            beat = await groups.heartbeat(HeartbeatRequest(GROUP, generation_id=generation, member_id=member))
            if beat.error_code is not ErrorCode.NONE:  # a member joined or left: join again
                break
    await groups.leave(LeaveGroupRequest(GROUP, (LeaveGroupMember(member),)))


async def main() -> None:
    async with GroupBroker(MemoryStore(), Settings(group_initial_rebalance_delay_ms=100)) as groups:
        leaving = {name: asyncio.Event() for name in ("ada", "bob", "cyd")}
        workers = [asyncio.create_task(work(groups, *each)) for each in leaving.items()]
        for name in ("cyd", "bob", "ada"):
            await asyncio.sleep(0.5)
            leaving[name].set()
        await asyncio.gather(*workers)


asyncio.run(main())
