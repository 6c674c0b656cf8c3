"""The bytes of consumers in JoinGroup and SyncGroup; the coordinator reads and writes them too (X-UP-05)."""

from fencepost.protocol.embedded import (
    HIGHEST_VERSION,
    NO_GENERATION,
    PROTOCOL_TYPE,
    Assignment,
    EmbeddedReader,
    SchemaError,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_partitions,
    encode_subscription,
)

__all__ = [
    "HIGHEST_VERSION",
    "NO_GENERATION",
    "PROTOCOL_TYPE",
    "Assignment",
    "EmbeddedReader",
    "SchemaError",
    "Subscription",
    "decode_assignment",
    "decode_subscription",
    "encode_assignment",
    "encode_partitions",
    "encode_subscription",
]
