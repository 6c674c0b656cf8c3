"""Records in bytes: keys and values as Kafka's group coordinator keeps them in ``__consumer_offsets`` (section 11.3).

``Codec`` is one release's; ``layout_of`` says which one's by a profile. How records stand in batches, and batches in a
log, is the log's own matter.
"""

from .errors import CodecError, TornRecord, UnknownType, UnknownVersion, Unwritable
from .layout import LAYOUTS, NEWEST, Layout, layout_of
from .records import Codec, Opaque, RecordBytes

__all__ = [
    "LAYOUTS",
    "NEWEST",
    "Codec",
    "CodecError",
    "Layout",
    "Opaque",
    "RecordBytes",
    "TornRecord",
    "UnknownType",
    "UnknownVersion",
    "Unwritable",
    "layout_of",
]
