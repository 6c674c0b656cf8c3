"""Faults of connections: limits, slow peers, the order of answers, and the end of the server."""

from __future__ import annotations

from ..replacement import Replacement
from .fault import Area, Fault

CONNECTION = "fencepost_server/net/connection.py"

FAULTS = (
    Fault(
        "trickling-frame-never-overdue", Area.CONNECTIONS,
        "each byte of a frame starts its time limit again",
        "send a frame one byte a second with frame_s 3: the connection must be closed after 3 s",
        (
            Replacement(
                CONNECTION, "Connection.data_received",
                "if self.doing is Doing.IDLE:", "if self.doing in (Doing.IDLE, Doing.READING):",
            ),
        ),
    ),
    Fault(
        "frame-of-the-limit-refused", Area.CONNECTIONS,
        "a frame of exactly socket.request.max.bytes is refused",
        "send a request of exactly frame_bytes: it must be answered",
        (
            Replacement(
                CONNECTION, "Connection._whole",
                "if not 0 <= length <= self._limits.frame_bytes:", "if not 0 <= length < self._limits.frame_bytes:",
            ),
        ),
    ),
    Fault(
        "one-connection-too-many", Area.CONNECTIONS,
        "the server accepts one connection more than its limit",
        "limit of two connections: the third must be closed",
        (
            Replacement(
                "fencepost_server/net/listener.py", "Listener._open",
                "if len(self.connections) >= self._limits.connections:",
                "if len(self.connections) > self._limits.connections:",
            ),
        ),
    ),
    Fault(
        "lost-connection-keeps-its-memory", Area.CONNECTIONS,
        "bytes of a peer that goes in the middle of a frame count towards buffered_bytes for ever",
        "send half a frame and disconnect, until their sum passes buffered_bytes, then a frame of 100 KiB on another "
        "connection: it must be answered",
        (
            Replacement(
                CONNECTION, "Connection.connection_lost", "self._hold(-self._held)", "self._held = 0",
            ),
        ),
    ),
    Fault(
        "pipelined-request-overtakes-a-join", Area.CONNECTIONS,
        "a request behind one that waits for its answer is handled before that one is answered",
        "send JoinGroup, which waits, and Heartbeat in one packet: the answers must come in that order",
        (
            Replacement(
                CONNECTION, "Connection._handle_buffered",
                "while self._begun is None and (frame := self._whole()) is not None:",
                "while (frame := self._whole()) is not None:",
            ),
        ),
    ),
    Fault(
        "answers-at-once-fill-the-memory", Area.CONNECTIONS,
        "requests that are answered at once are answered although the peer takes no answers",
        "send OffsetFetch of all for minutes and read nothing: the server must stop to read",
        (
            Replacement(
                CONNECTION, "Connection.data_received",
                "if self._begun is None and not self._full and self._arrived is not None",
                "if self._begun is None and self._arrived is not None",
            ),
        ),
    ),
    Fault(
        "shutdown-waits-for-half-frames", Area.CONNECTIONS,
        "a connection with a half frame holds up the end of the server",
        "send half a frame, SIGTERM: the server must end at once and not after drain_s",
        (
            Replacement(
                CONNECTION, "Connection.drain",
                "if self.doing in (Doing.IDLE, Doing.READING) and", "if self.doing is Doing.IDLE and",
            ),
        ),
    ),
    Fault(
        "half-frame-behind-a-request-is-idle", Area.CONNECTIONS,
        "a half frame that came together with a request counts as idle time, not as a slow frame",
        "send ApiVersions and half a frame in one packet, then nothing: the connection must be closed after frame_s, "
        "not after idle_s",
        (
            Replacement(
                CONNECTION, "Connection._run",
                "self._now(Doing.READING if self._buffer else Doing.IDLE)", "self._now(Doing.IDLE)",
            ),
        ),
    ),
    Fault(
        "slow-reader-answered-no-more", Area.CONNECTIONS,
        "a peer that reads again after a pause gets no answers to what it sent meanwhile",
        "send requests without reading until the server stops, then read: every answer must come",
        (
            Replacement(
                CONNECTION, "Connection.resume_writing",
                "elif self.doing is Doing.WRITING:", "elif self.doing is Doing.ANSWERING:",
            ),
        ),
    ),
    Fault(
        "slow-reader-kept-as-long-as-a-silent-one", Area.CONNECTIONS,
        "a peer that takes no answer is dropped after idle_s and not after write_s",
        "send requests and read nothing with write_s 1: the connection must be closed after a second",
        (
            Replacement(
                CONNECTION, "Connection.overdue",
                "waited > self._limits.write_s:", "waited > self._limits.idle_s:",
            ),
        ),
    ),
    Fault(
        "connection-served-after-the-end", Area.CONNECTIONS,
        "a connection whose TLS handshake ends after the server has stopped is served by the stopped server",
        "connect with TLS while the server stops: it must close the connection",
        (
            Replacement(
                "fencepost_server/net/listener.py", "Listener._open", "if self._closed:", "if not self._limits:"
            ),
        ),
    ),
)  # fmt: skip
