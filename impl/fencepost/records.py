"""Records of the offsets topic, with Kafka's names: what a coordinator writes and is loaded from."""

from .protocol.consumer_records import AssignedPartitions as AssignedPartitions
from .protocol.consumer_records import ClassicMemberMetadata as ClassicMemberMetadata
from .protocol.consumer_records import (
    ConsumerGroupCurrentMemberAssignmentKey as ConsumerGroupCurrentMemberAssignmentKey,
)
from .protocol.consumer_records import (
    ConsumerGroupCurrentMemberAssignmentValue as ConsumerGroupCurrentMemberAssignmentValue,
)
from .protocol.consumer_records import ConsumerGroupMemberMetadataKey as ConsumerGroupMemberMetadataKey
from .protocol.consumer_records import ConsumerGroupMemberMetadataValue as ConsumerGroupMemberMetadataValue
from .protocol.consumer_records import ConsumerGroupMetadataKey as ConsumerGroupMetadataKey
from .protocol.consumer_records import ConsumerGroupMetadataValue as ConsumerGroupMetadataValue
from .protocol.consumer_records import ConsumerGroupPartitionMetadataKey as ConsumerGroupPartitionMetadataKey
from .protocol.consumer_records import ConsumerGroupPartitionMetadataValue as ConsumerGroupPartitionMetadataValue
from .protocol.consumer_records import ConsumerGroupRegularExpressionKey as ConsumerGroupRegularExpressionKey
from .protocol.consumer_records import ConsumerGroupRegularExpressionValue as ConsumerGroupRegularExpressionValue
from .protocol.consumer_records import ConsumerGroupTargetAssignmentMemberKey as ConsumerGroupTargetAssignmentMemberKey
from .protocol.consumer_records import (
    ConsumerGroupTargetAssignmentMemberValue as ConsumerGroupTargetAssignmentMemberValue,
)
from .protocol.consumer_records import (
    ConsumerGroupTargetAssignmentMetadataKey as ConsumerGroupTargetAssignmentMetadataKey,
)
from .protocol.consumer_records import (
    ConsumerGroupTargetAssignmentMetadataValue as ConsumerGroupTargetAssignmentMetadataValue,
)
from .protocol.consumer_records import TopicMetadata as TopicMetadata
from .protocol.offset_records import ControlKey as ControlKey
from .protocol.offset_records import ControlValue as ControlValue
from .protocol.offset_records import OffsetCommitKey as OffsetCommitKey
from .protocol.offset_records import OffsetCommitValue as OffsetCommitValue
from .protocol.offset_records import Producer as Producer
from .protocol.records import GroupMetadataKey as GroupMetadataKey
from .protocol.records import GroupMetadataMember as GroupMetadataMember
from .protocol.records import GroupMetadataValue as GroupMetadataValue
from .protocol.records import Record as Record
from .protocol.records import RecordKey as RecordKey
from .protocol.records import RecordValue as RecordValue
