"""Records in bytes: keys and values as Kafka's group coordinator stores them in ``__consumer_offsets`` (section 11.3).

A ``Codec`` is that of one release; ``layout_of`` returns a profile's layout. Batches of records, and the log of
batches, are not part of this package.
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
