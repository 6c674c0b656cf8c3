"""The program of ``embed.py`` with a consumer group (KIP-848): the coordinator assigns the partitions.

Run it with ``python examples/embed_consumer.py``. It needs only Fencepost and asyncio."""

import asyncio
from uuid import uuid4

from fencepost import ErrorCode, GroupBroker, MemoryStore, Settings, Topic
from fencepost.messages import LEAVE_EPOCH, ConsumerGroupHeartbeatRequest, TopicPartitions

GROUP, TOPIC = "orders", Topic("orders", uuid4().bytes, partitions=6)
QUICK = Settings(
    group_consumer_heartbeat_interval_ms=50,
    group_consumer_min_heartbeat_interval_ms=50,
    group_consumer_assignment_interval_ms=0,
)


async def work(groups: GroupBroker, name: str, leaving: asyncio.Event) -> None:
    epoch, owned = 0, tuple[TopicPartitions, ...]()
    while not leaving.is_set():
        answer = await groups.consumer_heartbeat(
            ConsumerGroupHeartbeatRequest(
                GROUP,
                member_id=name,
                member_epoch=epoch,
                rebalance_timeout_ms=-1 if epoch else 10_000,  # -1 and None: unchanged
                subscribed_topic_names=None if epoch else (TOPIC.name,),
                topic_partitions=owned,
            )
        )
        if answer.error_code is not ErrorCode.NONE:  # fenced: stop all work, and join again
            epoch, owned = 0, ()
            continue
        epoch = answer.member_epoch
        if answer.assignment is not None:  # other partitions are revoked; the next heartbeat confirms it
            owned = answer.assignment
            print(f"epoch {epoch}: {name} works on {[part for row in owned for part in row.partitions]}", flush=True)
        await asyncio.sleep(answer.heartbeat_interval_ms / 1_000)
    print(f"epoch {LEAVE_EPOCH}: {name} works on []", flush=True)
    await groups.consumer_heartbeat(ConsumerGroupHeartbeatRequest(GROUP, member_id=name, member_epoch=LEAVE_EPOCH))


async def main() -> None:
    async with GroupBroker(MemoryStore(), QUICK) as groups:
        groups.set_topics([TOPIC])
        leaving = {name: asyncio.Event() for name in ("ada", "bob", "cyd")}
        workers = [asyncio.create_task(work(groups, *each)) for each in leaving.items()]
        for name in ("cyd", "bob", "ada"):
            await asyncio.sleep(0.7)
            leaving[name].set()
        await asyncio.gather(*workers)


asyncio.run(main())
