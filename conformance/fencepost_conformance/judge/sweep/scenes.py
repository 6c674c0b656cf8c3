"""The scenes of the sweep: requests in a meaningful order. Each scene uses a new group, topic or transaction.

Every answer may be an error; the scene then continues with the values that it has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from fencepost.protocol.embedded import Assignment, Subscription, encode_assignment, encode_subscription
from fencepost.protocol.partitions import TopicPartition

from .session import Session

#: The topic that exists before the recording begins; scenes create others.
TOPIC: Final = "sweep"
_MEMBER_ID_REQUIRED: Final = 79
_TIMEOUT_MS: Final = 10_000
_LATEST: Final = -1
_NO_SUCH_TOPIC: Final = bytes(range(1, 17))


def _subscription() -> bytes:
    return encode_subscription(Subscription((TOPIC,)), 1)


def _assignment() -> bytes:
    return encode_assignment(Assignment((TopicPartition(TOPIC, 0),)), 1)


def _offsets(name: str, topic_id: bytes, offset: int) -> list[dict[str, Any]]:
    row = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": 0, "committed_metadata": "note"}
    return [{"name": name, "topic_id": topic_id, "partitions": [row]}]


def _wanted(name: str, topic_id: bytes) -> list[dict[str, Any]]:
    return [{"name": name, "topic_id": topic_id, "partition_indexes": [0]}]


async def _fetch(
    session: Session, group_id: str, topics: Any, member_id: str | None = None, epoch: int = -1, *, stable: bool = False
) -> None:
    group = {"group_id": group_id, "member_id": member_id, "member_epoch": epoch, "topics": topics}
    await session.ask("offset_fetch", **group, groups=[group], require_stable=stable)


async def classic(session: Session) -> None:
    """A group with one classic member, from its first join to its deletion."""
    group_id = f"{session.name}-classic"
    await session.ask("find_coordinator", key=group_id, key_type=0, coordinator_keys=[group_id])
    wants = {
        "group_id": group_id,
        "session_timeout": _TIMEOUT_MS,
        "rebalance_timeout": _TIMEOUT_MS,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": _subscription()}],
        "reason": "sweep",
    }
    joined = await session.ask("join_group", **wants, member_id="")
    member_id = str(getattr(joined, "member_id", ""))
    if joined is not None and joined.error_code == _MEMBER_ID_REQUIRED:
        joined = await session.ask("join_group", **wants, member_id=member_id)
    generation = int(getattr(joined, "generation_id", -1))
    mine = {"group_id": group_id, "generation_id": generation, "member_id": member_id}
    await session.ask(
        "sync_group", **mine, protocol_type="consumer", protocol_name="range",
        assignments=[{"member_id": member_id, "assignment": _assignment()}],
    )  # fmt: skip
    await session.ask("heartbeat", **mine)
    commit = {**mine, "generation_id_or_member_epoch": generation, "retention_time": -1}
    await session.ask("offset_commit", **commit, topics=_offsets(TOPIC, session.topic_id, 3))
    await _fetch(session, group_id, _wanted(TOPIC, session.topic_id))
    await session.ask("describe_groups", groups=[group_id])
    await session.ask("consumer_group_describe", group_ids=[group_id])  # the API of other groups
    await session.ask("list_groups", states_filter=["Stable"], types_filter=["classic"])
    await session.ask("leave_group", group_id=group_id, member_id=member_id, members=[{"member_id": member_id}])
    await _fetch(session, group_id, None)
    await session.ask("delete_groups", groups_names=[group_id, f"{group_id}-missing"])


async def consumer(session: Session) -> None:
    """A group with one member of KIP-848; its topic exists before the recording."""
    group_id, member_id = f"{session.name}-consumer", f"{session.name}-member"
    about = {"group_id": group_id, "member_id": member_id}
    beat = {**about, "rebalance_timeout": -1, "subscribed_topic_names": None, "topic_partitions": None}
    joined = await session.ask(
        "consumer_group_heartbeat", **about, member_epoch=0, rebalance_timeout=_TIMEOUT_MS,
        subscribed_topic_names=[TOPIC], topic_partitions=[],
    )  # fmt: skip
    epoch = max(int(getattr(joined, "member_epoch", 0)), 0)
    given = getattr(getattr(joined, "assignment", None), "topic_partitions", ())
    owned = [{"topic_id": (row.topic_id or UUID(int=0)).bytes, "partitions": list(row.partitions)} for row in given]
    answer = await session.ask("consumer_group_heartbeat", **{**beat, "topic_partitions": owned}, member_epoch=epoch)
    epoch = max(int(getattr(answer, "member_epoch", epoch)), 0)
    commit = {**about, "generation_id_or_member_epoch": epoch, "generation_id": epoch}
    await session.ask("offset_commit", **commit, topics=_offsets(TOPIC, session.topic_id, 4))
    await _fetch(session, group_id, _wanted(TOPIC, session.topic_id), member_id, epoch)
    await session.ask("consumer_group_describe", group_ids=[group_id])
    await session.ask("describe_groups", groups=[group_id])  # the API of other groups
    await session.ask("list_groups", types_filter=["consumer"])
    await session.ask("consumer_group_heartbeat", **beat, member_epoch=-1)
    await _fetch(session, group_id, None)
    await session.ask("delete_groups", groups_names=[group_id])


async def simple(session: Session) -> None:
    """Commits of an admin client, to a group without members."""
    group_id, other = f"{session.name}-simple", f"{session.name}-other"
    commit = {"generation_id_or_member_epoch": -1, "generation_id": -1, "member_id": "", "retention_time": -1}
    for name, offset in ((group_id, 5), (other, 6)):
        await session.ask("offset_commit", **commit, group_id=name, topics=_offsets(TOPIC, session.topic_id, offset))
    await _fetch(session, group_id, _wanted(TOPIC, session.topic_id))
    groups = [{"group_id": name, "topics": None} for name in (group_id, other, f"{other}-missing")]
    await session.ask("offset_fetch", groups=groups, group_id=other, topics=None, require_stable=True)
    rows = [{"name": TOPIC, "partitions": [{"partition_index": 0}, {"partition_index": 99}]}]
    await session.ask("offset_delete", group_id=group_id, topics=rows)
    await _fetch(session, group_id, None)
    await session.ask("delete_groups", groups_names=[group_id, other])


async def transaction(session: Session) -> None:
    """Offsets that are committed in a transaction, and a transaction that is aborted."""
    of_id, group_id = f"{session.name}-transaction", f"{session.name}-transacted"
    await session.ask("find_coordinator", key=of_id, key_type=1, coordinator_keys=[of_id])
    begun = await session.ask("init_producer_id", transactional_id=of_id, transaction_timeout=_TIMEOUT_MS)
    await session.ask("init_producer_id", transactional_id=None, transaction_timeout=_TIMEOUT_MS)
    epoch = int(getattr(begun, "producer_epoch", -1))
    for committed in (True, False):
        mine = {
            "transactional_id": of_id,
            "producer_id": int(getattr(begun, "producer_id", -1)),
            "producer_epoch": epoch,
        }
        topics = [{"name": TOPIC, "partitions": [0]}]
        await session.ask(
            "add_partitions_to_txn",
            v3_and_below_transactional_id=of_id,
            v3_and_below_producer_id=mine["producer_id"],
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=topics,
            transactions=[{**mine, "verify_only": False, "topics": topics}],
        )
        await session.ask("add_offsets_to_txn", **mine, group_id=group_id)
        await session.ask(
            "txn_offset_commit", **mine, group_id=group_id, generation_id=-1, member_id="",
            topics=_offsets(TOPIC, session.topic_id, 7 if committed else 8),
        )  # fmt: skip
        await _fetch(session, group_id, _wanted(TOPIC, session.topic_id), stable=True)
        ended = await session.ask("end_txn", **mine, committed=committed)
        epoch = max(int(getattr(ended, "producer_epoch", epoch)), epoch)
        await _fetch(session, group_id, None)


def _id_of(name: str, answer: Any) -> bytes | None:
    """The id of a topic in an answer to CreateTopics or Metadata, if its version has ids."""
    rows = [row for row in getattr(answer, "topics", ()) if row.name == name]
    topic_id = getattr(rows[0], "topic_id", None) if rows else None
    return None if topic_id is None else topic_id.bytes


async def topics(session: Session) -> None:
    """A topic that is created, grown, deleted, and created again with another id."""
    name, group_id = f"{session.name}-topic", f"{session.name}-of-topic"
    asks = {"num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    commit = {"generation_id_or_member_epoch": -1, "generation_id": -1, "member_id": "", "group_id": group_id}
    for number in (1, 2):
        made = await session.ask(
            "create_topics", topics=[{"name": name, **asks}], timeout=_TIMEOUT_MS, validate_only=False
        )
        shown = await session.ask(
            "metadata", topics=[{"name": name, "topic_id": None}], allow_auto_topic_creation=False
        )
        topic_id = _id_of(name, made) or _id_of(name, shown) or _NO_SUCH_TOPIC
        await session.ask("metadata", topics=[{"name": None, "topic_id": topic_id}], allow_auto_topic_creation=False)
        await session.ask("offset_commit", **commit, topics=_offsets(name, topic_id, number))
        await _fetch(session, group_id, _wanted(name, topic_id))
        if number == 1:
            await session.ask("describe_topic_partitions", topics=[{"name": name}], response_partition_limit=10)
            await session.ask(
                "create_partitions", topics=[{"name": name, "count": 2, "assignments": None}], timeout=_TIMEOUT_MS
            )
        # by name in one round, by id in the other
        by_id = {"name": None, "topic_id": topic_id} if number == 1 else {"name": name, "topic_id": None}
        await session.ask("delete_topics", topics=[by_id], topic_names=[name], timeout=_TIMEOUT_MS)
        await _fetch(session, group_id, None)


async def reading(session: Session) -> None:
    """Other requests of consumers and tools: versions, settings, offsets of the log."""
    await session.ask("api_versions", client_software_name="sweep", client_software_version="1")
    await session.ask("describe_cluster", endpoint_type=1)
    resource = {"resource_type": 2, "resource_name": TOPIC, "configuration_keys": ["cleanup.policy"]}
    await session.ask("describe_configs", resources=[resource])
    group = {"resource_type": 32, "resource_name": f"{session.name}-group"}
    change = {"name": "consumer.session.timeout.ms", "config_operation": 0, "value": "46000"}
    await session.ask("incremental_alter_configs", resources=[{**group, "configs": [change]}])
    row = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": _LATEST}
    await session.ask("list_offsets", replica_id=-1, topics=[{"name": TOPIC, "partitions": [row]}])
    epoch = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}
    await session.ask("offset_for_leader_epoch", replica_id=-1, topics=[{"topic": TOPIC, "partitions": [epoch]}])
    part = {"partition": 0, "current_leader_epoch": -1, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    wanted = [{"topic": TOPIC, "topic_id": session.topic_id, "partitions": [part]}]
    limits = {"max_wait": 10, "min_bytes": 1, "max_bytes": 1 << 20}
    await session.ask("fetch", replica_id=-1, **limits, session_epoch=-1, topics=wanted, forgotten_topics_data=[])


@dataclass(frozen=True, slots=True)
class Scene:
    """One scene. ``apis``: the APIs that it sends, by kio's names."""

    play: Callable[[Session], Awaitable[None]]
    apis: tuple[str, ...]


_OFFSETS: Final = ("offset_commit", "offset_fetch")
SCENES: Final = (
    Scene(
        classic,
        (
            "find_coordinator", "join_group", "sync_group", "heartbeat", *_OFFSETS, "describe_groups",
            "consumer_group_describe", "list_groups", "leave_group", "delete_groups",
        ),
    ),
    Scene(consumer, ("consumer_group_heartbeat", *_OFFSETS, "consumer_group_describe", "describe_groups")),
    Scene(simple, (*_OFFSETS, "offset_delete", "delete_groups")),
    Scene(
        transaction,
        (
            "find_coordinator", "init_producer_id", "add_partitions_to_txn", "add_offsets_to_txn", "txn_offset_commit",
            "offset_fetch", "end_txn",
        ),
    ),
    Scene(
        topics,
        ("create_topics", "metadata", *_OFFSETS, "describe_topic_partitions", "create_partitions", "delete_topics"),
    ),
    Scene(
        reading,
        (
            "api_versions", "describe_cluster", "describe_configs", "incremental_alter_configs", "list_offsets",
            "offset_for_leader_epoch", "fetch",
        ),
    ),
)  # fmt: skip
#: All swept APIs, by kio's names.
APIS: Final = tuple(sorted({api for scene in SCENES for api in scene.apis}))
