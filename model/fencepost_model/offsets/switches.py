"""The rules of offsets as intended, and what each switch of a profile changes; see ``differences``."""

from __future__ import annotations

from typing import Final

from fencepost.protocol.errors import ErrorCode

from ..differences import checked
from . import releases as kafka
from .clean import belongs_to_topic
from .variant import OffsetsVariant

#: the intended rules
INTENDED: Final = OffsetsVariant(
    belongs_to_topic=belongs_to_topic,
)

#: what each switch of a profile changes
DIFFERENCES: Final = checked(
    OffsetsVariant,
    {
        "fault_refused_commit_leaves_group": {"group_needs_record": False},
        "fault_fetch_without_member_fails": {"fetch_without_member": ErrorCode.UNKNOWN_SERVER_ERROR},
        "fault_expiring_offset_keeps_topic_id": {"expiring_offset_has_topic_id": True},
        "fault_loaded_offset_makes_group": {"group_waits_for_records": False},
        "old_no_topic_ids": {"stores_topic_ids": False},
        "old_transactions_without_topic_ids": {"transactions_store_topic_ids": False},
        "old_partitions_deleted": {"belongs_to_topic": kafka.has_partition},
    },
)
