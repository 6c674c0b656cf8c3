"""Faults of topics, settings, and answers in pages."""

from __future__ import annotations

from ..replacement import Replacement
from .fault import Area, Fault

ADMIN, METADATA = "fencepost_server/apis/admin.py", "fencepost_server/apis/metadata.py"
REBALANCES = "fencepost_server/observe/rebalances.py"
#: servers that are killed and started again
RESTARTS = "tests/wire/test_serve_data.py"
#: several servers on one database
NODES = "tests/unit/server/test_nodes.py"

FAULTS = (
    Fault(
        "cursor-index-for-every-topic", Area.CONFIGURATION,
        "DescribeTopicPartitions skips the first partitions of every topic, and not only of the cursor's topic",
        "topics a and b of four partitions; DescribeTopicPartitions from cursor (a, 2): b must come whole",
        (
            Replacement(
                METADATA, "describe_topic_partitions",
                "first = start[1] if name == start[0] else 0", "first = start[1]",
            ),
        ),
    ),
    Fault(
        "cursor-behind-the-last-partition", Area.CONFIGURATION,
        "a page that ends with a topic's last partition has a cursor to a partition that does not exist",
        "topic a of two partitions; DescribeTopicPartitions with limit 2: next_cursor must be null",
        (
            Replacement(
                METADATA, "describe_topic_partitions",
                "if last < len(topic.logs):",
                "if last <= len(topic.logs) and left == 0:",
            ),
        ),
    ),
    Fault(
        "page-limit-for-each-topic", Area.CONFIGURATION,
        "response_partition_limit applies to each topic and not to the page",
        "topics a and b of two partitions; DescribeTopicPartitions with limit 3: three partitions must come",
        (
            Replacement(
                METADATA, "describe_topic_partitions", "left -= last - first", "left = max(left, 0)",
            ),
        ),
    ),
    Fault(
        "same-count-is-an-increase", Area.CONFIGURATION,
        "CreatePartitions succeeds for the number that the topic has already",
        "CreatePartitions t with count 4 where t has 4: it must answer INVALID_PARTITIONS",
        (
            Replacement(
                "fencepost_server/data/topics.py", "Topics.check_growth",
                "if partitions <= len(topic.logs):", "if partitions < len(topic.logs):",
            ),
        ),
    ),
    Fault(
        "grown-topic-not-kept", Area.CONFIGURATION,
        "partitions that CreatePartitions added are gone after a restart",
        "CreatePartitions t with count 6, restart, Metadata of t: it must show six partitions",
        (
            Replacement(
                "fencepost_server/node.py", "Node.grow_topic",
                "    await self._keep(topic)", "    await asyncio.sleep(0)",
            ),
        ),
        tests=(RESTARTS,),
    ),
    Fault(
        "second-group-setting-replaces-the-first", Area.CONFIGURATION,
        "IncrementalAlterConfigs of a group forgets the settings that the request does not name",
        "set consumer.session.timeout.ms of g, then consumer.heartbeat.interval.ms: DescribeConfigs must show both",
        (
            Replacement(
                ADMIN, "_alter", "config = dict(node.group_configs.get(name, {}))", "config = {}",
            ),
        ),
    ),
    Fault(
        "validation-changes-the-group", Area.CONFIGURATION,
        "IncrementalAlterConfigs with validate_only changes the settings of a group",
        "IncrementalAlterConfigs of group g with validate_only, DescribeConfigs: the default must stand",
        (
            Replacement(
                ADMIN, "_alter",
                "if not validate_only:\n    await node.configure_group(name, config)",
                "await node.configure_group(name, config)",
            ),
        ),
    ),
    Fault(
        "deletion-wakes-the-first-partition", Area.CONFIGURATION,
        "only readers of a deleted topic's first partition learn of it",
        "Fetch of t-1 at its end with max_wait 30 s, DeleteTopics t: the Fetch must be answered at once",
        (
            Replacement(
                "fencepost_server/data/topics.py", "Topics.delete",
                "for log in topic.logs:", "for log in topic.logs[:1]:",
            ),
        ),
    ),
    Fault(
        "metadata-v0-lists-nothing", Area.CONFIGURATION,
        "Metadata v0 with an empty list returns no topics; in v0 that asks for all",
        "CreateTopics t, Metadata v0 with an empty list: t must come",
        (
            Replacement(
                METADATA, "metadata",
                "if asked is None or (call.version < _NULL_SINCE and not asked):", "if asked is None:",
            ),
        ),
    ),
    Fault(
        "longest-topic-name-refused", Area.CONFIGURATION,
        "a topic name of exactly 249 characters is refused",
        "CreateTopics with a name of 249 letters: it must be made",
        (Replacement("fencepost_server/data/topics.py", "name_fault", "if len(name) > 249:", "if len(name) >= 249:"),),
    ),
    Fault(
        "greatest-group-setting-refused", Area.CONFIGURATION,
        "a group setting that equals the broker's maximum is refused",
        "IncrementalAlterConfigs g consumer.session.timeout.ms = group.consumer.max.session.timeout.ms: it must be set",
        (Replacement("protocol/kafka_names.py", "group_config", "if value > most:", "if value >= most:"),),
    ),
    Fault(
        "session-below-the-default-heartbeat", Area.CONFIGURATION,
        "a group's session timeout is compared with its own heartbeat interval only, not with the broker's",
        "broker heartbeat interval 50 s, session minimum 45 s; set consumer.session.timeout.ms of g to 46,000: it must "
        "answer INVALID_CONFIG",
        (
            Replacement(
                "protocol/kafka_names.py", "group_config",
                'values.get("consumer_heartbeat_interval_ms", settings.group_consumer_heartbeat_interval_ms)',
                'values.get("consumer_heartbeat_interval_ms", 0)',
            ),
        ),
    ),
    Fault(
        "software-version-not-checked", Area.CONFIGURATION,
        "ApiVersions checks the name of the client software and not its version",
        "ApiVersions v3 with software version '1 0': it must answer INVALID_REQUEST",
        (
            Replacement(
                METADATA, "api_versions",
                "if not _SOFTWARE.fullmatch(name) or not _SOFTWARE.fullmatch(version):",
                "if not _SOFTWARE.fullmatch(name):",
            ),
        ),
    ),
    Fault(
        "restored-group-settings-not-applied", Area.CONFIGURATION,
        "after a restart DescribeConfigs shows a group's settings, but the group does not follow them",
        "set consumer.heartbeat.interval.ms of g to 6,000, restart, ConsumerGroupHeartbeat: it must answer 6,000",
        (
            Replacement(
                "fencepost_server/restore.py", "restore",
                "node.groups.configure(group_id, group_config(node.settings, config))",
                "group_config(node.settings, config)",
            ),
        ),
        tests=(RESTARTS,),
    ),
    Fault(
        "one-denied-name-hides-the-page", Area.CONFIGURATION,
        "DescribeTopicPartitions of named topics leaves out those that the caller may not describe",
        "DescribeTopicPartitions of the topic secret, which is denied: a row must answer TOPIC_AUTHORIZATION_FAILED",
        (
            Replacement(
                METADATA, "describe_topic_partitions", "if not listed_all:", "if not listed_all and not names:",
            ),
        ),
    ),
    Fault(
        "standby-misses-growth", Area.CONFIGURATION,
        "a node that stands by does not see that a topic got more partitions",
        "two nodes on a database; CreatePartitions at the leader, Metadata at the other: it must show them",
        (
            Replacement(
                "fencepost_server/cluster/member.py", "look",
                '(row["id"], row["partitions"]) != (topic.topic_id.hex(), len(topic.logs))',
                'row["id"] != topic.topic_id.hex()',
            ),
        ),
        tests=(NODES,),
    ),
    Fault(
        "undone-rebalance-shown-as-stable", Area.CONFIGURATION,
        "a rebalance that the log did not take is shown as Stable",
        "a write of a group fails during a rebalance: the status page must show the rebalance as undone",
        (
            Replacement(
                REBALANCES, "Rebalances._take_up",
                "UNDONE if state is None else state.value", '"Stable" if state is None else state.value',
            ),
        ),
        tests=("tests/unit/server/test_rebalance_page.py",),
    ),
    Fault(
        "unloaded-rebalance-stays-under-way", Area.CONFIGURATION,
        "a rebalance stays under way on the status page when its coordinator gives up the group",
        "move a coordinator during a rebalance: the status page must show the rebalance as unloaded",
        (Replacement(REBALANCES, "Rebalances.watch", "if isinstance(one, Unload):", "if place < 0:"),),
        tests=("tests/unit/server/test_rebalance_page.py",),
    ),
    Fault(
        "superseded-rebalance-stays-under-way", Area.CONFIGURATION,
        "a rebalance stays under way on the status page when the next one begins before its end",
        "two members join one after the other: the status page must show the first rebalance as superseded",
        (Replacement(REBALANCES, "Rebalances._start", "self._end(report.group_id, SUPERSEDED, at_ms)", "pass"),),
        tests=("tests/unit/server/test_rebalance_page.py",),
    ),
    Fault(
        "removed-members-not-shown", Area.CONFIGURATION,
        "the status page does not show which members did not rejoin in time",
        "two members, one does not rejoin within the rebalance timeout: the status page must show it as removed",
        (Replacement(REBALANCES, "Rebalances._take_up", "if report.removed:", "if False:"),),
        tests=("tests/unit/server/test_rebalance_page.py",),
    ),
)  # fmt: skip
