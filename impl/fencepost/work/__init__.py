"""Workers that share work: members of a group in an asyncio program. ``GroupBroker.worker`` creates them for a
coordinator in the same process, ``fencepost.remote.Groups.worker`` for a Kafka broker or ``fencepost serve``."""

from .link import Link
from .problems import CommitFailed, ShareLost, WorkerFailed
from .share import Share
from .worker import Worker

__all__ = ["CommitFailed", "Link", "Share", "ShareLost", "Worker", "WorkerFailed"]
