"""Fencepost: the coordination behind Kafka consumer groups, as a library.

This module has all names for a program that embeds the coordinator or a member:

    from fencepost import INTENDED, RandomChoices, Settings, initial_state, step

``step`` and ``initial_state`` are the coordinator; ``member_step`` and ``consumer_member_step`` are the members of
classic and of consumer groups; ``GroupBroker`` hosts coordinators in an asyncio program. Wrong use raises
``MisuseError``. ``rules["C-JOIN-43"]`` is the text of a rule that an error, a trace or a source line cites.

A name is imported on first use: a program that uses only the protocol classes does not load the coordinator.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from . import host, log
    from .aio import GroupBroker, RandomChoices, Started, Stopped
    from .coordinator import (
        CoordinatorState,
        consumer_view,
        consumer_views,
        initial_state,
        offsets_view,
        replay,
        step,
        view,
        views,
    )
    from .functions import KafkaFunctions, StandardFunctions
    from .host import (
        Broker,
        Coordinator,
        Endpoint,
        FindCoordinatorRequest,
        FindCoordinatorResponse,
        KeyType,
        OnPartition,
        Served,
        find_coordinator,
        initial_broker,
    )
    from .host import step as host_step
    from .log import BehindLog, FencedEpoch, PartitionLog
    from .member import Member, MemberSettings
    from .member import step as member_step
    from .member.assignors.range import RangeAssignor
    from .member.assignors.round_robin import RoundRobinAssignor
    from .member.assignors.sticky import CooperativeStickyAssignor, StickyAssignor
    from .member.consumer import ConsumerMember, ConsumerSettings
    from .member.consumer import step as consumer_member_step
    from .member.events import (
        Answered,
        Call,
        CancelMemberTimer,
        Close,
        CloseOption,
        Command,
        Commit,
        CommitFinished,
        CommitRefused,
        CommitResult,
        CoordinatorFound,
        CoordinatorLost,
        Disconnect,
        EnforceRebalance,
        Failure,
        FailureKind,
        FindCoordinator,
        Listener,
        ListenerDone,
        LookupFailed,
        MemberEvent,
        MemberTimer,
        MemberTimerFired,
        MetadataChanged,
        Poll,
        RequestLost,
        RequestMetadata,
        Returned,
        Send,
        SetMemberTimer,
        Subscribe,
        SubscribePattern,
        SubscribeRegex,
        Unsubscribe,
    )
    from .protocol.choices import Choices, Functions
    from .protocol.consumer_messages import (
        JOIN_EPOCH,
        LEAVE_EPOCH,
        STATIC_LEAVE_EPOCH,
        ConsumerGroupDescribeRequest,
        ConsumerGroupDescribeResponse,
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
        DescribedConsumerGroup,
        DescribedConsumerMember,
        NamedTopicPartitions,
        TopicPartitions,
    )
    from .protocol.consumer_records import (
        AssignedPartitions,
        ClassicMemberMetadata,
        ConsumerGroupCurrentMemberAssignmentKey,
        ConsumerGroupCurrentMemberAssignmentValue,
        ConsumerGroupMemberMetadataKey,
        ConsumerGroupMemberMetadataValue,
        ConsumerGroupMetadataKey,
        ConsumerGroupMetadataValue,
        ConsumerGroupPartitionMetadataKey,
        ConsumerGroupPartitionMetadataValue,
        ConsumerGroupRegularExpressionKey,
        ConsumerGroupRegularExpressionValue,
        ConsumerGroupTargetAssignmentMemberKey,
        ConsumerGroupTargetAssignmentMemberValue,
        ConsumerGroupTargetAssignmentMetadataKey,
        ConsumerGroupTargetAssignmentMetadataValue,
        TopicMetadata,
    )
    from .protocol.consumer_view import (
        ConsumerGroupState,
        ConsumerGroupView,
        ConsumerMemberView,
        ResolvedRegex,
        SubscriptionType,
    )
    from .protocol.embedded import (
        Assignment,
        SchemaError,
        Subscription,
        decode_assignment,
        decode_subscription,
        encode_assignment,
        encode_subscription,
    )
    from .protocol.errors import ErrorCode, IllegalEvent, MisuseError, NoSuchProfile, WrongState, WrongType
    from .protocol.events import (
        Appended,
        AppendFailed,
        CancelTimer,
        Event,
        GroupConfig,
        GroupConfigChanged,
        Load,
        LoadFailed,
        LoadStarted,
        Outcome,
        Reply,
        Request,
        SetTimer,
        TaskDone,
        TaskKey,
        TaskKind,
        TimerCommand,
        TimerFired,
        TimerKey,
        TimerKind,
        Topic,
        TopicsChanged,
        Unload,
    )
    from .protocol.messages import (
        VERSIONS,
        DeletedGroup,
        DeleteGroupsRequest,
        DeleteGroupsResponse,
        DescribedGroup,
        DescribedMember,
        DescribeGroupsRequest,
        DescribeGroupsResponse,
        HeartbeatRequest,
        HeartbeatResponse,
        JoinGroupMember,
        JoinGroupRequest,
        JoinGroupResponse,
        LeaveGroupMember,
        LeaveGroupMemberResponse,
        LeaveGroupRequest,
        LeaveGroupResponse,
        ListedGroup,
        ListGroupsRequest,
        ListGroupsResponse,
        Protocol,
        RequestBody,
        ResponseBody,
        SyncGroupAssignment,
        SyncGroupRequest,
        SyncGroupResponse,
    )
    from .protocol.offset_messages import (
        OffsetCommitRequest,
        OffsetCommitRequestPartition,
        OffsetCommitRequestTopic,
        OffsetCommitResponse,
        OffsetCommitResponsePartition,
        OffsetCommitResponseTopic,
        OffsetDeleteRequest,
        OffsetDeleteRequestTopic,
        OffsetDeleteResponse,
        OffsetFetchRequest,
        OffsetFetchRequestGroup,
        OffsetFetchRequestTopic,
        OffsetFetchResponse,
        OffsetFetchResponseGroup,
        OffsetFetchResponsePartition,
        OffsetFetchResponseTopic,
        TxnOffsetCommitRequest,
        TxnOffsetCommitResponse,
        WriteTxnMarkerRequest,
        WriteTxnMarkerResponse,
    )
    from .protocol.offset_records import (
        ControlKey,
        ControlValue,
        OffsetCommitKey,
        OffsetCommitValue,
        Producer,
    )
    from .protocol.offset_view import (
        OffsetsView,
        OffsetView,
    )
    from .protocol.partitions import TopicPartition
    from .protocol.profile import Profile
    from .protocol.profiles import INTENDED, PROFILES
    from .protocol.rebalances import (
        GenerationBegan,
        GroupType,
        MemberIdentity,
        RebalanceCause,
        RebalanceEnded,
        RebalanceReason,
        RebalanceReport,
        RebalanceStarted,
    )
    from .protocol.records import (
        GroupMetadataKey,
        GroupMetadataMember,
        GroupMetadataValue,
        Record,
        RecordKey,
        RecordValue,
    )
    from .protocol.settings import BadSettings, MigrationPolicy, Settings
    from .protocol.view import GroupState, GroupView, MemberView
    from .reader import Reader, ReaderSettings
    from .reader import step as reader_step
    from .rulebook import Rule, rules
    from .sharding import partition_for
    from .store import (
        AppendError,
        MemoryStore,
        PostgresStore,
        SQLiteStore,
        Store,
        StoreError,
    )
    from .work import CommitFailed, Share, ShareLost, Worker, WorkerFailed

#: module of each name; ``step:member_step`` is ``step`` there and ``member_step`` here; names of "" are modules
_HOMES: Final = {
    "": "host log",
    "aio": "GroupBroker RandomChoices Started Stopped",
    "coordinator": """
        CoordinatorState consumer_view consumer_views initial_state offsets_view replay step view views
    """,
    "functions": "KafkaFunctions StandardFunctions",
    "host": """
        Broker Coordinator Endpoint FindCoordinatorRequest FindCoordinatorResponse KeyType OnPartition Served
        find_coordinator initial_broker step:host_step
    """,
    "log": "BehindLog FencedEpoch PartitionLog",
    "member": "Member MemberSettings step:member_step",
    "member.assignors.range": "RangeAssignor",
    "member.assignors.round_robin": "RoundRobinAssignor",
    "member.assignors.sticky": "CooperativeStickyAssignor StickyAssignor",
    "member.consumer": "ConsumerMember ConsumerSettings step:consumer_member_step",
    "member.events": """
        Answered Call CancelMemberTimer Close CloseOption Command Commit CommitFinished CommitRefused
        CommitResult CoordinatorFound CoordinatorLost Disconnect EnforceRebalance Failure FailureKind FindCoordinator
        Listener ListenerDone LookupFailed MemberEvent MemberTimer MemberTimerFired MetadataChanged Poll
        RequestLost RequestMetadata Returned Send SetMemberTimer Subscribe SubscribePattern SubscribeRegex
        Unsubscribe
    """,
    "protocol.choices": "Choices Functions",
    "protocol.consumer_messages": """
        ConsumerGroupDescribeRequest ConsumerGroupDescribeResponse ConsumerGroupHeartbeatRequest
        ConsumerGroupHeartbeatResponse DescribedConsumerGroup DescribedConsumerMember JOIN_EPOCH LEAVE_EPOCH
        NamedTopicPartitions STATIC_LEAVE_EPOCH TopicPartitions
    """,
    "protocol.consumer_records": """
        AssignedPartitions ClassicMemberMetadata ConsumerGroupCurrentMemberAssignmentKey
        ConsumerGroupCurrentMemberAssignmentValue ConsumerGroupMemberMetadataKey
        ConsumerGroupMemberMetadataValue ConsumerGroupMetadataKey ConsumerGroupMetadataValue
        ConsumerGroupPartitionMetadataKey ConsumerGroupPartitionMetadataValue ConsumerGroupRegularExpressionKey
        ConsumerGroupRegularExpressionValue ConsumerGroupTargetAssignmentMemberKey
        ConsumerGroupTargetAssignmentMemberValue ConsumerGroupTargetAssignmentMetadataKey
        ConsumerGroupTargetAssignmentMetadataValue TopicMetadata
    """,
    "protocol.consumer_view": "ConsumerGroupState ConsumerGroupView ConsumerMemberView ResolvedRegex SubscriptionType",
    "protocol.embedded": """
        Assignment SchemaError Subscription decode_assignment decode_subscription encode_assignment
        encode_subscription
    """,
    "protocol.errors": "ErrorCode IllegalEvent MisuseError NoSuchProfile WrongState WrongType",
    "protocol.events": """
        Appended AppendFailed CancelTimer Event GroupConfig GroupConfigChanged Load LoadFailed LoadStarted
        Outcome Reply Request SetTimer TaskDone TaskKey TaskKind TimerCommand TimerFired TimerKey TimerKind
        Topic TopicsChanged Unload
    """,
    "protocol.messages": """
        DeletedGroup DeleteGroupsRequest DeleteGroupsResponse DescribedGroup DescribedMember
        DescribeGroupsRequest DescribeGroupsResponse HeartbeatRequest HeartbeatResponse JoinGroupMember
        JoinGroupRequest JoinGroupResponse LeaveGroupMember LeaveGroupMemberResponse LeaveGroupRequest
        LeaveGroupResponse ListedGroup ListGroupsRequest ListGroupsResponse Protocol RequestBody ResponseBody
        SyncGroupAssignment SyncGroupRequest SyncGroupResponse VERSIONS
    """,
    "protocol.offset_messages": """
        OffsetCommitRequest OffsetCommitRequestPartition OffsetCommitRequestTopic OffsetCommitResponse
        OffsetCommitResponsePartition OffsetCommitResponseTopic OffsetDeleteRequest
        OffsetDeleteRequestTopic OffsetDeleteResponse OffsetFetchRequest OffsetFetchRequestGroup
        OffsetFetchRequestTopic OffsetFetchResponse OffsetFetchResponseGroup
        OffsetFetchResponsePartition OffsetFetchResponseTopic TxnOffsetCommitRequest
        TxnOffsetCommitResponse WriteTxnMarkerRequest WriteTxnMarkerResponse
    """,
    "protocol.offset_records": "ControlKey ControlValue OffsetCommitKey OffsetCommitValue Producer",
    "protocol.offset_view": "OffsetView OffsetsView",
    "protocol.partitions": "TopicPartition",
    "protocol.profile": "Profile",
    "protocol.profiles": "INTENDED PROFILES",
    "protocol.rebalances": """
        GenerationBegan GroupType MemberIdentity RebalanceCause RebalanceEnded RebalanceReason RebalanceReport
        RebalanceStarted
    """,
    "protocol.records": "GroupMetadataKey GroupMetadataMember GroupMetadataValue Record RecordKey RecordValue",
    "protocol.settings": "BadSettings MigrationPolicy Settings",
    "protocol.view": "GroupState GroupView MemberView",
    "rulebook": "Rule rules",
    "reader": "Reader ReaderSettings step:reader_step",
    "sharding": "partition_for",
    "store": "AppendError MemoryStore PostgresStore SQLiteStore Store StoreError",
    "work": "CommitFailed Share ShareLost Worker WorkerFailed",
}
_WHERE: Final = {
    each.rpartition(":")[2]: (home, each.partition(":")[0]) for home, names in _HOMES.items() for each in names.split()
}

__all__ = [
    "INTENDED",
    "JOIN_EPOCH",
    "LEAVE_EPOCH",
    "PROFILES",
    "STATIC_LEAVE_EPOCH",
    "VERSIONS",
    "Answered",
    "AppendError",
    "AppendFailed",
    "Appended",
    "AssignedPartitions",
    "Assignment",
    "BadSettings",
    "BehindLog",
    "Broker",
    "Call",
    "CancelMemberTimer",
    "CancelTimer",
    "Choices",
    "ClassicMemberMetadata",
    "Close",
    "CloseOption",
    "Command",
    "Commit",
    "CommitFailed",
    "CommitFinished",
    "CommitRefused",
    "CommitResult",
    "ConsumerGroupCurrentMemberAssignmentKey",
    "ConsumerGroupCurrentMemberAssignmentValue",
    "ConsumerGroupDescribeRequest",
    "ConsumerGroupDescribeResponse",
    "ConsumerGroupHeartbeatRequest",
    "ConsumerGroupHeartbeatResponse",
    "ConsumerGroupMemberMetadataKey",
    "ConsumerGroupMemberMetadataValue",
    "ConsumerGroupMetadataKey",
    "ConsumerGroupMetadataValue",
    "ConsumerGroupPartitionMetadataKey",
    "ConsumerGroupPartitionMetadataValue",
    "ConsumerGroupRegularExpressionKey",
    "ConsumerGroupRegularExpressionValue",
    "ConsumerGroupState",
    "ConsumerGroupTargetAssignmentMemberKey",
    "ConsumerGroupTargetAssignmentMemberValue",
    "ConsumerGroupTargetAssignmentMetadataKey",
    "ConsumerGroupTargetAssignmentMetadataValue",
    "ConsumerGroupView",
    "ConsumerMember",
    "ConsumerMemberView",
    "ConsumerSettings",
    "ControlKey",
    "ControlValue",
    "CooperativeStickyAssignor",
    "Coordinator",
    "CoordinatorFound",
    "CoordinatorLost",
    "CoordinatorState",
    "DeleteGroupsRequest",
    "DeleteGroupsResponse",
    "DeletedGroup",
    "DescribeGroupsRequest",
    "DescribeGroupsResponse",
    "DescribedConsumerGroup",
    "DescribedConsumerMember",
    "DescribedGroup",
    "DescribedMember",
    "Disconnect",
    "Endpoint",
    "EnforceRebalance",
    "ErrorCode",
    "Event",
    "Failure",
    "FailureKind",
    "FencedEpoch",
    "FindCoordinator",
    "FindCoordinatorRequest",
    "FindCoordinatorResponse",
    "Functions",
    "GenerationBegan",
    "GroupBroker",
    "GroupConfig",
    "GroupConfigChanged",
    "GroupMetadataKey",
    "GroupMetadataMember",
    "GroupMetadataValue",
    "GroupState",
    "GroupType",
    "GroupView",
    "HeartbeatRequest",
    "HeartbeatResponse",
    "IllegalEvent",
    "JoinGroupMember",
    "JoinGroupRequest",
    "JoinGroupResponse",
    "KafkaFunctions",
    "KeyType",
    "LeaveGroupMember",
    "LeaveGroupMemberResponse",
    "LeaveGroupRequest",
    "LeaveGroupResponse",
    "ListGroupsRequest",
    "ListGroupsResponse",
    "ListedGroup",
    "Listener",
    "ListenerDone",
    "Load",
    "LoadFailed",
    "LoadStarted",
    "LookupFailed",
    "Member",
    "MemberEvent",
    "MemberIdentity",
    "MemberSettings",
    "MemberTimer",
    "MemberTimerFired",
    "MemberView",
    "MemoryStore",
    "MetadataChanged",
    "MigrationPolicy",
    "MisuseError",
    "NamedTopicPartitions",
    "NoSuchProfile",
    "OffsetCommitKey",
    "OffsetCommitRequest",
    "OffsetCommitRequestPartition",
    "OffsetCommitRequestTopic",
    "OffsetCommitResponse",
    "OffsetCommitResponsePartition",
    "OffsetCommitResponseTopic",
    "OffsetCommitValue",
    "OffsetDeleteRequest",
    "OffsetDeleteRequestTopic",
    "OffsetDeleteResponse",
    "OffsetFetchRequest",
    "OffsetFetchRequestGroup",
    "OffsetFetchRequestTopic",
    "OffsetFetchResponse",
    "OffsetFetchResponseGroup",
    "OffsetFetchResponsePartition",
    "OffsetFetchResponseTopic",
    "OffsetView",
    "OffsetsView",
    "OnPartition",
    "Outcome",
    "PartitionLog",
    "Poll",
    "PostgresStore",
    "Producer",
    "Profile",
    "Protocol",
    "RandomChoices",
    "RangeAssignor",
    "Reader",
    "ReaderSettings",
    "RebalanceCause",
    "RebalanceEnded",
    "RebalanceReason",
    "RebalanceReport",
    "RebalanceStarted",
    "Record",
    "RecordKey",
    "RecordValue",
    "Reply",
    "Request",
    "RequestBody",
    "RequestLost",
    "RequestMetadata",
    "ResolvedRegex",
    "ResponseBody",
    "Returned",
    "RoundRobinAssignor",
    "Rule",
    "SQLiteStore",
    "SchemaError",
    "Send",
    "Served",
    "SetMemberTimer",
    "SetTimer",
    "Settings",
    "Share",
    "ShareLost",
    "StandardFunctions",
    "Started",
    "StickyAssignor",
    "Stopped",
    "Store",
    "StoreError",
    "Subscribe",
    "SubscribePattern",
    "SubscribeRegex",
    "Subscription",
    "SubscriptionType",
    "SyncGroupAssignment",
    "SyncGroupRequest",
    "SyncGroupResponse",
    "TaskDone",
    "TaskKey",
    "TaskKind",
    "TimerCommand",
    "TimerFired",
    "TimerKey",
    "TimerKind",
    "Topic",
    "TopicMetadata",
    "TopicPartition",
    "TopicPartitions",
    "TopicsChanged",
    "TxnOffsetCommitRequest",
    "TxnOffsetCommitResponse",
    "Unload",
    "Unsubscribe",
    "Worker",
    "WorkerFailed",
    "WriteTxnMarkerRequest",
    "WriteTxnMarkerResponse",
    "WrongState",
    "WrongType",
    "consumer_member_step",
    "consumer_view",
    "consumer_views",
    "decode_assignment",
    "decode_subscription",
    "encode_assignment",
    "encode_subscription",
    "find_coordinator",
    "host",
    "host_step",
    "initial_broker",
    "initial_state",
    "log",
    "member_step",
    "offsets_view",
    "partition_for",
    "reader_step",
    "replay",
    "rules",
    "step",
    "view",
    "views",
]


def __getattr__(name: str) -> Any:
    """Return the object with that name, imported from its own module on first use."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, there = _WHERE[name]
    found = import_module(f"{__name__}.{home or there}")
    if home:
        found = getattr(found, there)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
