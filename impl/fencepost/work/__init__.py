"""Workers that share work: members of a group that live in an asyncio program. ``GroupBroker.worker`` makes them over a
coordinator in the same process, ``fencepost.remote.Groups.worker`` over a Kafka broker or ``fencepost serve``."""

from .link import Link
from .problems import CommitFailed, ShareLost, WorkerFailed
from .share import Share
from .worker import Worker

__all__ = ["CommitFailed", "Link", "Share", "ShareLost", "Worker", "WorkerFailed"]
