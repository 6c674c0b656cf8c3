"""Log-ins, right and wrong: one sequence of messages for each connection, and the answers of a broker."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, TypeAlias

from fencepost.wire import frames
from fencepost.wire.convert import plain
from fencepost_server.options import Address

from .scram_client import DIGESTS, ScramClient
from .served import Client

#: Names and passwords with every kind of character that a file of users and Kafka's settings can contain.
USERS: Final = {
    "alice": "secret-1",
    "a,b": "p=,x",
    "a=b": "=2C",
    "=2C": "=3D",
    "=3D": ",",
    "n=x,r=y": "a:b",
    "grüße": "pässword",
    "ａ": "ｂ",
    "🔑": "🔒",
    "a b": " space ",
    "q\"'\\": "\"'\\u0041",
    "carol": "grüße 🔒",
    "%{}[];#!": "$${x};#!",
}
#: a step: the action and its arguments
Step: TypeAlias = tuple[Any, ...]

_PLAIN, _SCRAM = ("shake", 1, "PLAIN"), ("shake", 1, "SCRAM-SHA-256")
_ALICE: Final = ("say", b"\0alice\0secret-1")
_FIRST: Final = ("first", "alice", "secret-1", {})
_VERSIONS: Final = ("ask", "api_versions", 0, {})
_METADATA: Final = ("ask", "metadata", 1, {"topics": []})
_END: Final = ("end",)
#: until then, a connection that must be closed is closed
_PATIENCE_S: Final = 10.0
_UNKNOWN_VERSIONS: Final = b"\0\x12\0\x63\0\0\0\x01\xff\xff\0"
_ORDERS: Final = [{"name": "orders", "partition_indexes": [0, 1]}]
_HEARTBEAT: Final = {"group_id": "g", "generation_id": 1, "member_id": "m"}

_OTHERS: Final[dict[str, Step]] = {
    "ApiVersions": _VERSIONS,
    "ApiVersions v4": ("ask", "api_versions", 4, {"client_software_name": "a", "client_software_version": "1"}),
    "ApiVersions v4 without a name": ("ask", "api_versions", 4, {}),
    "Metadata of no topic": _METADATA,
    "Metadata of all topics": ("ask", "metadata", 9, {"topics": None}),
    "Metadata of a topic": ("ask", "metadata", 9, {"topics": [{"name": "orders"}]}),
    "Heartbeat": ("ask", "heartbeat", 4, _HEARTBEAT),
    "OffsetFetch v1": ("ask", "offset_fetch", 1, {"group_id": "g", "topics": _ORDERS}),
    "OffsetFetch v8": ("ask", "offset_fetch", 8, {"groups": [{"group_id": "g", "topics": None}]}),
    "FindCoordinator": ("ask", "find_coordinator", 4, {"key_type": 0, "coordinator_keys": ["a", "b"]}),
    "ListGroups": ("ask", "list_groups", 4, {}),
    "DescribeGroups of no group": ("ask", "describe_groups", 5, {"groups": []}),
    "a request without sense": ("raw", b"\0\x03\0\x01\0\0\0\x01\xff\xff\x7f"),
    "ApiVersions of an unknown version": ("raw", _UNKNOWN_VERSIONS),
    "an unknown version": ("raw", b"\0\x03\0\x63\0\0\0\x01\xff\xff\0"),
    "SaslHandshake of the same mechanism": _SCRAM,
    "SaslHandshake of another mechanism": _PLAIN,
    "SaslHandshake of an unknown mechanism": ("shake", 1, "GSSAPI"),
    "SaslHandshake v0": ("shake", 0, "PLAIN"),
}

_FIRST_MESSAGES: Final = (
    "", "n,,", "n,,n=alice", "n,,r=nonce,n=alice", "n,,n=alice,r=", "n,,n=alice,r=a b", "n,,n=alice,r=ä",
    "n,,n=alice,r=!~+/=", "n,,n=alice,r=a\x7f", "n,,n=,r=nonce", "n,,n=alice=,r=nonce", "n,,n=alice=2D,r=nonce",
    "n,,n=alice,x=1,r=nonce", "n,,n=alice,r=nonce,", "n,,n=alice,r=nonce,x", "n,,n=alice,r=nonce,1=x",
    "n,,n=alice,r=nonce,x=", "n,,n=alice,r=nonce,r=other", "n,,n=alice,r=nonce,tokenauth=true",
    "n,,n=alice,r=nonce,tokenauth=false", "n,,n=alice,r=nonce,x=ä", "n,,m=,n=alice,r=nonce",
    "y,,n=alice,r=nonce", "p=tls-unique,,n=alice,r=nonce", "N,,n=alice,r=nonce", ",,n=alice,r=nonce",
    "n,a=,n=alice,r=nonce", "n,a=alice,n=alice,r=nonce", "n,a=carol,n=alice,r=nonce", "n,b=alice,n=alice,r=nonce",
    "n,alice,n=alice,r=nonce", "n,a=alice=,n=alice,r=nonce", "n,,n=nobody,r=nonce", "n,a=x,n=nobody,r=nonce",
    "n,a=a=2Cb,n=a=2Cb,r=nonce", "n,a=a=3Db,n=a=3Db,r=nonce", "n,,n=gr\xfc\xdfe,r=nonce", "n,,n=al\nice,r=nonce",
)  # fmt: skip
_PLAIN_MESSAGES: Final = (
    b"", b"\0", b"alice\0secret-1", b"\0alice\0secret-1\0", b"\0alice\0secret-1\0more", b"alice\0alice\0secret-1",
    b"carol\0alice\0secret-1", b"nobody\0alice\0secret-1", b"\0\0secret-1", b"\0alice\0", b"\0nobody\0", b"\0\0",
    b"\0ALICE\0secret-1", b"\0alice\0secret-2", b"\0alice\0secret-", b"\0alice\0\xff", b"\xff\0alice\0secret-1",
    b"\0alice\0secret-1\xff", b"carol\0alice\0wrong",
)  # fmt: skip
_PROOFS: Final = {
    "nonce": "only its own nonce",
    "longer nonce": "a longer nonce",
    "base64": "a character that is not Base64",
    "short": "too few bytes",
    "long": "too many bytes",
    "bit": "one bit changed",
    "no proof": "nothing behind the nonce",
    "first": "the first message again",
    "extension": "an extension",
    "unsigned extension": "an extension that is not signed",
    "channel": "another channel binding",
    "no channel": "an empty channel binding",
}


def sequences() -> dict[str, list[Step]]:
    """Return the answers that show the outcome."""
    found: dict[str, list[Step]] = {
        "SaslAuthenticate before SaslHandshake": [_ALICE],
        "SaslAuthenticate after ApiVersions": [_VERSIONS, _ALICE],
        "Metadata first": [_METADATA],
        "ApiVersions, then Metadata": [_VERSIONS, _METADATA],
        "ApiVersions, then a log-in": [_VERSIONS, _PLAIN, _ALICE, _VERSIONS, _METADATA],
        "ApiVersions twice": [_VERSIONS, _VERSIONS],
        "ApiVersions without a name twice": [_OTHERS["ApiVersions v4 without a name"]] * 2 + [_VERSIONS, _PLAIN],
        "ApiVersions of an unknown version": [("raw", _UNKNOWN_VERSIONS), _VERSIONS, _PLAIN],
        "a log-in, then SaslAuthenticate": [_PLAIN, _ALICE, _ALICE, _METADATA],
        "a log-in by SCRAM, then SaslAuthenticate": [_SCRAM, _FIRST, ("proof", ""), _ALICE, _METADATA],
        "an old log-in, then another": [("shake", 0, "PLAIN"), _ALICE, _METADATA, _PLAIN, ("shake", 0, "PLAIN")],
        "an old log-in by SCRAM": [("shake", 0, "SCRAM-SHA-512"), _FIRST, ("proof", ""), _METADATA],
        "an old log-in that is wrong": [("shake", 0, "PLAIN"), ("say", b"\0alice\0no")],
        "an old log-in that is wrong by SCRAM": [("shake", 0, "SCRAM-SHA-256"), _FIRST, ("proof", "bit")],
        "a SaslAuthenticate where none is expected": [("shake", 0, "PLAIN"), ("ask", "sasl_authenticate", 1, {})],
        "PLAIN in SCRAM": [_SCRAM, _ALICE, _END],
        "SCRAM in PLAIN": [_PLAIN, _FIRST, _END],
        "bytes that are not text": [_SCRAM, ("say", b"n,,n=alice,r=\xff"), _END],
        "another password": [_SCRAM, ("first", "alice", "secret-2", {}), ("proof", ""), _END],
        "SaslAuthenticate v0": [_PLAIN, ("ask", "sasl_authenticate", 0, {"auth_bytes": _ALICE[1]}), _METADATA],
    }
    for version in (0, 1):
        for mechanism in ("GSSAPI", "plain", "", "SCRAM-SHA-1"):
            found[f"SaslHandshake v{version} of {mechanism!r}"] = [("shake", version, mechanism), _END]
    for words, step in _OTHERS.items():
        found[f"{words} in an exchange"] = [_SCRAM, step, _END]
        found[f"{words} in the middle of an exchange"] = [_SCRAM, _FIRST, step, _END]
        if step[0] == "shake":
            found[f"{words} after a log-in"] = [_PLAIN, _ALICE, step, _METADATA]
    for said in _PLAIN_MESSAGES:
        found[f"PLAIN {said!r}"] = [_PLAIN, ("say", said)]
    for text in _FIRST_MESSAGES:
        found[f"SCRAM {text!r}"] = [_SCRAM, ("say", text.encode())]
    for change, words in _PROOFS.items():
        found[f"a final message with {words}"] = [_SCRAM, _FIRST, ("proof", change)]
    for more in ({"extension": "x=1"}, {"reserved": "m=1"}, {"authzid": "alice"}):
        found[f"a proof of a first message with {more}"] = [_SCRAM, ("first", "alice", "secret-1", more), ("proof", "")]
    for name, password in USERS.items():
        for authzid in ("", name):
            said = f"{authzid}\0{name}\0{password}".encode()
            found[f"PLAIN as {name!r} for {authzid!r}"] = [_PLAIN, ("say", said), _METADATA]
            for mechanism in DIGESTS:
                more = {"authzid": authzid or None}
                found[f"{mechanism} as {name!r} for {authzid!r}"] = [
                    ("shake", 1, mechanism), ("first", name, password, more), ("proof", ""), _METADATA,
                ]  # fmt: skip
    return found


#: of the log-ins in the sequences below
LIFETIME_MS: Final = 4_000
_AFTER: Final = ("wait", LIFETIME_MS / 1_000 + 1.0)


def renewals() -> dict[str, list[Step]]:
    """Sequences of messages to a broker whose log-ins end after ``LIFETIME_MS``, by what they show."""
    log_in: list[Step] = [_PLAIN, ("lifetime", _ALICE[1])]
    old: list[Step] = [("shake", 0, "PLAIN"), _ALICE]
    return {
        "a renewal": [*log_in, *log_in, _METADATA],
        "a renewal by SCRAM": [_SCRAM, _FIRST, ("proof", ""), _SCRAM, _FIRST, ("proof", ""), _METADATA],
        "two renewals in a second": [*log_in, *log_in, _PLAIN, _METADATA],
        "two renewals in two seconds": [*log_in, *log_in, ("wait", 1.5), *log_in, _METADATA],
        "a renewal with another password": [*log_in, _PLAIN, ("say", b"\0alice\0no"), _END],
        "a renewal as another user": [*log_in, _PLAIN, ("say", f"\0carol\0{USERS['carol']}".encode()), _END],
        "a renewal as another user by SCRAM": [
            _SCRAM, _FIRST, ("proof", ""), _SCRAM, ("first", "a b", USERS["a b"], {}), ("proof", ""), _END,
        ],
        "a renewal by another mechanism": [*log_in, _SCRAM, _FIRST, _END],
        "Metadata in a renewal by another mechanism": [*log_in, _SCRAM, _METADATA, _END],
        "SaslHandshake in a renewal by another mechanism": [*log_in, _SCRAM, _PLAIN, _END],
        "a renewal by an unknown mechanism": [*log_in, ("shake", 1, "GSSAPI"), _END],
        "Metadata in a renewal": [*log_in, _PLAIN, _METADATA, _END],
        "ApiVersions in a renewal": [*log_in, _PLAIN, _VERSIONS, _END],
        "SaslHandshake in a renewal": [*log_in, _PLAIN, _PLAIN, _END],
        "SaslAuthenticate without SaslHandshake": [*log_in, _ALICE, _METADATA],
        "an old renewal": [*log_in, *old, _METADATA],
        "an old renewal that is wrong": [*log_in, ("shake", 0, "PLAIN"), ("say", b"\0alice\0no")],
        "an old log-in and a renewal": [*old, *log_in, _METADATA],
        "an old log-in after its end": [*old, _AFTER, _METADATA],
        "SaslAuthenticate v0 after the end": [
            _PLAIN, ("ask", "sasl_authenticate", 0, {"auth_bytes": _ALICE[1]}), _AFTER, _METADATA
        ],
        "Metadata after the end": [*log_in, _AFTER, _METADATA],
        "ApiVersions after the end": [*log_in, _AFTER, _VERSIONS],
        "SaslAuthenticate after the end": [*log_in, _AFTER, _ALICE],
        "a renewal after the end": [*log_in, _AFTER, *log_in, _METADATA],
        "a renewal that lasts beyond the end": [*log_in, _PLAIN, _AFTER, _ALICE, _METADATA],
        "a renewal in time": [*log_in, ("wait", 2.5), *log_in, ("wait", 2.5), _METADATA],
        "the end of a renewed log-in": [*log_in, *log_in, _AFTER, _METADATA],
    }  # fmt: skip


class Visitor:
    """A connection on which a sequence is played until it is closed."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._mechanism = ""
        self._bare = False
        self._scram: ScramClient | None = None
        self._server_first = b""

    async def play(self, steps: list[Step]) -> list[str]:
        """Return the answer to each step; the last is ``closed`` if the connection was closed."""
        answers: list[str] = []
        for verb, *given in steps:
            try:
                answers.append(await getattr(self, f"_{verb}")(*given))
            except (ConnectionError, asyncio.IncompleteReadError, frames.MalformedFrame):
                answers.append("closed")
                break
        return answers

    async def _shake(self, version: int, mechanism: str) -> str:
        answer = await self._client.ask("sasl_handshake", version, mechanism=mechanism)
        if not answer.error_code:
            self._mechanism, self._bare = mechanism, version == 0
        return f"{int(answer.error_code)} {' '.join(sorted(answer.mechanisms))}".strip()

    async def _say(self, message: bytes) -> str:
        code, answer = await self._sent(message)
        return f"{code} {answer[:2].decode()}".strip()

    async def _lifetime(self, message: bytes) -> str:
        """Log in; the answer says for how long."""
        answer = await self._client.ask("sasl_authenticate", 2, auth_bytes=message)
        return f"{int(answer.error_code)} {answer.session_lifetime // timedelta(milliseconds=1)} ms"

    async def _wait(self, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "waited"

    async def _sent(self, message: bytes) -> tuple[int, bytes]:
        if self._bare:
            answer = await self._raw_answer(message)
            self._bare = answer.startswith(b"r=")
            return 0, answer
        reply = await self._client.ask("sasl_authenticate", 2, auth_bytes=message)
        return int(reply.error_code), reply.auth_bytes

    async def _first(self, name: str, password: str, more: dict[str, Any]) -> str:
        mechanism = self._mechanism if self._mechanism in DIGESTS else "SCRAM-SHA-256"
        self._scram = ScramClient(mechanism, name, password, "nonce", **more)
        code, self._server_first = await self._sent(self._scram.first())
        return f"{code} {self._server_first[:2].decode()}".strip()

    async def _proof(self, change: str) -> str:
        if not self._server_first:
            return "nothing to prove"
        assert self._scram is not None
        code, answer = await self._sent(changed(self._scram, self._server_first, change))
        return f"{code} {'it knows the user' if self._scram.is_server(answer) else answer.decode()}".strip()

    async def _ask(self, api: str, version: int, values: dict[str, Any]) -> str:
        answer = await self._client.ask(api, version, **values)
        return " ".join(map(str, _codes(plain(answer)))) or "answered"

    async def _raw_answer(self, message: bytes) -> bytes:
        self._client.writer.write(frames.framed(message))
        answer = await asyncio.wait_for(frames.read_frame(self._client.reader, 1 << 20), 60)
        if answer is None:
            raise ConnectionResetError("closed")
        return answer

    async def _raw(self, message: bytes) -> str:
        answer = await self._raw_answer(message)
        return f"bytes {answer[4:].hex()}"

    async def _end(self) -> str:
        return "closed" if await self._client.closed(_PATIENCE_S) else "open"


def changed(client: ScramClient, server_first: bytes, change: str) -> bytes:
    """Return the last message of a client with another value in it."""
    nonce = server_first.decode().split(",")[0][2:]
    if change == "extension":
        return client.final(server_first, extension="x=1")
    if change == "channel":
        return client.final(server_first, channel=b"y,,")
    if change == "no channel":
        return client.final(server_first, channel=b"")
    message = client.final(server_first, nonce={"nonce": client.nonce, "longer nonce": nonce + "a"}.get(change))
    start = message.index(b",p=")
    first_bit = b"B" if message[start + 5 : start + 6] != b"B" else b"C"
    return {
        "base64": message[:-5] + b"*" + message[-4:],
        "short": message[:start] + b",p=AAAA",
        "long": message[:start] + b",p=AAAA" + message[start + 3 :],
        "bit": message[: start + 5] + first_bit + message[start + 6 :],
        "unsigned extension": message[:start] + b",x=1" + message[start:],
        "no proof": message[:start],
        "first": client.first(),
    }.get(change, message)


def _codes(value: Any) -> list[int]:
    """Return all error codes in an answer."""
    if isinstance(value, Mapping):
        own = [value["error_code"]] if "error_code" in value else []
        return own + [code for each in value.values() for code in _codes(each)]
    if isinstance(value, list):
        return sorted({code for each in value for code in _codes(each)})
    return []


async def answers(at: Address, found: dict[str, list[Step]], together: int = 8) -> dict[str, list[str]]:
    """What is answered there to these sequences; so many are played at the same time."""
    some = asyncio.Semaphore(together)

    async def one(steps: list[Step]) -> list[str]:
        async with some:
            client = await Client.to(at)
            try:
                return await Visitor(client).play(steps)
            finally:
                client.close()

    return dict(zip(found, await asyncio.gather(*map(one, found.values())), strict=True))
