"""Limits for peers, log-ins, rights, the second port, and the end of a server."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode as Code

from fencepost import Settings
from fencepost.wire.frames import framed, read_frame
from fencepost_server.data.batches import Batch
from fencepost_server.options import Address, Limits
from fencepost_server.run import Ready
from fencepost_server.security.acl import Acl, BadRule, Operation, Resource, parse_rules
from fencepost_server.security.sasl import BadUsers, Users, parse_users
from fencepost_server.security.session import LoginRefused

from .served import LOOPBACK, Client, play, running

#: how long the first member of a group waits for others
DELAY: dict[str, Any] = {"settings": Settings(group_initial_rebalance_delay_ms=700)}
JOIN: dict[str, Any] = {
    "group_id": "g",
    "session_timeout": 10_000,
    "rebalance_timeout": 10_000,
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "metadata": b"m"}],
}


async def joined(client: Client, **more: Any) -> Any:
    """Let a first member join a classic group; it waits for the initial delay."""
    first = await client.ask("join_group", 9, **{**JOIN, **more})
    assert first.error_code == Code.member_id_required
    client.send("join_group", 9, **{**JOIN, **more, "member_id": first.member_id})


def test_a_frame_above_the_limit_closes_the_connection_and_no_other() -> None:
    async def session() -> None:
        async with running(limits=Limits(frame_bytes=1_000, drain_s=1)) as ready:
            good, bad = await Client.to(ready.listen), await Client.to(ready.listen)
            bad.writer.write((1_001).to_bytes(4, "big"))
            assert await bad.closed()
            negative = await Client.to(ready.listen)
            negative.writer.write(b"\xff\xff\xff\xff")
            assert await negative.closed()
            assert (await good.ask("api_versions", 3, client_software_name="a", client_software_version="1")).api_keys
            good.close()

    play(session())


def test_connections_above_the_limit_are_refused() -> None:
    async def session() -> None:
        async with running(limits=Limits(connections=2, drain_s=1)) as ready:
            two = [await Client.to(ready.listen) for _ in range(2)]
            for each in two:
                await each.ask("api_versions", 0)
            third = await Client.to(ready.listen)
            assert await third.closed()
            two[0].close()
            await asyncio.sleep(0.05)
            fourth = await Client.to(ready.listen)
            await fourth.ask("api_versions", 0)

    play(session())


def test_a_frame_that_does_not_come_whole_is_not_waited_for() -> None:
    async def session() -> None:
        async with running(limits=Limits(frame_s=0.3, idle_s=30, drain_s=1)) as ready:
            slow, quiet = await Client.to(ready.listen), await Client.to(ready.listen)
            slow.writer.write((100).to_bytes(4, "big") + b"abc")
            assert await slow.closed()
            await quiet.ask("api_versions", 0)

    play(session())


def test_a_silent_connection_is_dropped_unless_it_waits_for_its_answer() -> None:
    async def session() -> None:
        async with running(limits=Limits(idle_s=0.4, drain_s=1), **DELAY) as ready:
            silent, waiting = await Client.to(ready.listen), await Client.to(ready.listen)
            await silent.ask("api_versions", 0)
            await joined(waiting)
            assert await silent.closed()
            assert (await waiting.answer("join_group", 9)).error_code == Code.none  # after the initial delay

    play(session())


def test_a_peer_that_takes_no_answers_is_dropped() -> None:
    async def session() -> None:
        async with running(limits=Limits(write_s=0.3, idle_s=30, drain_s=1), topics={"t": 1}) as ready:
            log = ready.node.topics.by_name["t"].logs[0]
            log.add(Batch(bytes(1 << 20), 0, 0, 0, 0, 0, -1, -1, -1, 1))
            log.durable(1)
            deaf = await Client.to(ready.listen)
            deaf.writer.transport.pause_reading()  # type: ignore[attr-defined]
            asked = [{"topic": "t", "partitions": [{"partition": 0, "partition_max_bytes": 1 << 20}]}]
            for _ in range(30):
                deaf.send("fetch", 12, max_bytes=1 << 20, topics=asked)
            await asyncio.sleep(1.0)
            deaf.writer.transport.resume_reading()  # type: ignore[attr-defined]
            received = 0
            try:
                while data := await asyncio.wait_for(deaf.reader.read(1 << 20), 60):
                    received += len(data)
            except ConnectionError:
                pass
            assert received < 30 << 20
            other = await Client.to(ready.listen)
            await other.ask("api_versions", 0)

    play(session())


def test_data_of_all_connections_together_is_limited() -> None:
    async def session() -> None:
        async with running(limits=Limits(buffered_bytes=300_000, frame_bytes=1 << 20, drain_s=1)) as ready:
            one, two = await Client.to(ready.listen), await Client.to(ready.listen)
            for each in (one, two):
                each.writer.write((1 << 20).to_bytes(4, "big") + bytes(200_000))
            ends = [asyncio.ensure_future(each.closed()) for each in (one, two)]
            done, still_open = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            assert [end.result() for end in done] == [True]
            assert not (await asyncio.wait(still_open, timeout=0.3))[0]
            three = await Client.to(ready.listen)
            await three.ask("api_versions", 0)

    play(session())


def test_requests_that_wait_are_answered_when_it_ends() -> None:
    """As in Kafka, the groups are given up, and answers that would take minutes are not awaited."""
    delay: dict[str, Any] = {"settings": Settings(group_initial_rebalance_delay_ms=600_000)}

    async def session() -> None:
        async with running(limits=Limits(drain_s=30.0), topics={"t": 1}, **delay) as ready:
            joins, fetches, idle = [await Client.to(ready.listen) for _ in range(3)]
            await joined(joins)
            await idle.ask("api_versions", 0)
            wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000}
            fetches.send(
                "fetch", 11, replica_id=-1, max_wait=600_000, min_bytes=1, max_bytes=1_000, isolation_level=0,
                session_id=0, session_epoch=-1, topics=[{"topic": "t", "partitions": [wanted]}],
                forgotten_topics_data=[], rack_id="",
            )  # fmt: skip
            await asyncio.sleep(0.1)
        assert (await joins.answer("join_group", 9)).error_code == Code.not_coordinator
        (answer,) = (await fetches.answer("fetch", 11)).responses
        assert answer.partitions[0].error_code == Code.none
        assert await idle.closed()

    play(session())


def test_requests_of_a_connection_are_answered_in_their_order() -> None:
    async def session() -> None:
        async with running(**DELAY) as ready:
            client = await Client.to(ready.listen)
            await joined(client)
            client.send("api_versions", 0)
            assert (await client.answer("join_group", 9)).error_code == Code.none
            assert (await client.answer("api_versions", 0)).api_keys

    play(session())


# log-ins


def plain(name: str, password: str) -> bytes:
    return f"\0{name}\0{password}".encode()


def test_nothing_is_answered_before_a_log_in() -> None:
    async def session() -> None:
        async with running(users=Users({"alice": "secret"})) as ready:
            early = await Client.to(ready.listen)
            assert (await early.ask("api_versions", 0)).error_code == Code.none
            early.send("metadata", 1, topics=None)
            assert await early.closed()
            quick = await Client.to(ready.listen)
            await quick.ask("api_versions", 0)
            quick.send("heartbeat", 4, group_id="g", generation_id=1, member_id="m")  # answered where it arrives
            assert await quick.closed()
            wrong = await Client.to(ready.listen)
            answer = await wrong.ask("sasl_handshake", 1, mechanism="GSSAPI")
            assert answer.error_code == Code.unsupported_sasl_mechanism
            assert answer.mechanisms == ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
            assert await wrong.closed()
            wrong = await Client.to(ready.listen)
            await wrong.ask("sasl_handshake", 1, mechanism="PLAIN")
            refused = await wrong.ask("sasl_authenticate", 2, auth_bytes=plain("alice", "guess"))
            assert refused.error_code == Code.sasl_authentication_failed
            wrong.send("api_versions", 0)
            assert await wrong.closed()
            right = await Client.to(ready.listen)
            await right.ask("sasl_handshake", 1, mechanism="PLAIN")
            assert (await right.ask("sasl_authenticate", 2, auth_bytes=plain("alice", "secret"))).error_code == 0
            assert (await right.ask("metadata", 1, topics=None)).brokers

    play(session())


def test_an_old_client_logs_in_without_headers() -> None:
    async def session() -> None:
        async with running(users=Users({"alice": "secret"})) as ready:
            for password, right in (("secret", True), ("guess", False)):
                client = await Client.to(ready.listen)
                await client.ask("sasl_handshake", 0, mechanism="PLAIN")
                client.writer.write(framed(plain("alice", password)))
                if right:
                    assert await read_frame(client.reader, 100) == b""
                    assert (await client.ask("metadata", 1, topics=None)).brokers
                else:
                    assert await client.closed()

    play(session())


def test_a_client_that_does_not_log_in_is_dropped() -> None:
    async def session() -> None:
        limits = Limits(login_s=0.4, drain_s=1)
        async with running(users=Users({"alice": "secret"}), limits=limits) as ready:
            idler = await Client.to(ready.listen)
            for _ in range(2):
                await idler.ask("api_versions", 3, client_software_name="", client_software_version="")
            assert await idler.closed()

    play(session())


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_librdkafka_logs_in(mechanism: str) -> None:
    confluent = pytest.importorskip(
        "confluent_kafka.admin", reason="needs confluent-kafka: pip install -e '.[clients]'"
    )

    def topics(ready: Ready, password: str, patience_s: int) -> list[str]:
        client = confluent.AdminClient(
            {
                "bootstrap.servers": str(ready.listen),
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": mechanism,
                "sasl.username": "alice",
                "sasl.password": password,
                "log_level": 0,
            }
        )
        return list(client.list_topics(timeout=patience_s).topics)

    async def session() -> None:
        async with running(users=Users({"alice": "s,e=cret"}), topics={"orders": 1}) as ready:
            assert await asyncio.to_thread(topics, ready, "s,e=cret", 60) == ["orders"]
            with pytest.raises(Exception, match=r"transport|timed out|authentication"):
                await asyncio.to_thread(topics, ready, "wrong", 2)

    play(session())


def scram(users: Users, mechanism: str, digest: str, password: str, nonce: str = "") -> str | None:
    """Run the whole exchange of a client with that password (RFC 5802); ``nonce``: a nonce that is not the server's."""
    exchange = users.begin(mechanism)
    bare = "n=alice,r=mine"
    first, _ = exchange.step(f"n,,{bare}".encode())
    values = {part[0]: part[2:] for part in first.decode().split(",")}
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), base64.b64decode(values["s"]), int(values["i"]))
    client_key = hmac.digest(salted, b"Client Key", digest)
    without = f"c=biws,r={nonce or values['r']}"
    signed = f"{bare},{first.decode()},{without}".encode()
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), signed, digest)
    proof = base64.b64encode(bytes(one ^ other for one, other in zip(client_key, signature, strict=True))).decode()
    last, name = exchange.step(f"{without},p={proof}".encode())
    assert last == b"v=" + base64.b64encode(hmac.digest(hmac.digest(salted, b"Server Key", digest), signed, digest))
    return name


@pytest.mark.parametrize(("mechanism", "digest"), [("SCRAM-SHA-256", "sha256"), ("SCRAM-SHA-512", "sha512")])
def test_a_proof_is_of_the_password_and_of_this_exchange(mechanism: str, digest: str) -> None:
    users = Users({"alice": "secret"})
    assert scram(users, mechanism, digest, "secret") == "alice"
    with pytest.raises(LoginRefused, match="credentials"):
        scram(users, mechanism, digest, "guess")
    with pytest.raises(LoginRefused):
        scram(users, mechanism, digest, "secret", nonce="mine")
    with pytest.raises(LoginRefused, match="credentials"):
        users.begin(mechanism).step(b"n,,n=bob,r=mine")
    for message in (b"", b"n,,", b"\xff", b"p=tls,,n=alice,r=mine", b"n,a=bob,n=alice,r=mine"):
        with pytest.raises(LoginRefused):
            users.begin(mechanism).step(message)


def test_a_file_of_users_names_its_wrong_line() -> None:
    assert parse_users("# staff\nalice:a:b\n\nbob:c\n") == {"alice": "a:b", "bob": "c"}
    with pytest.raises(BadUsers, match="line 2"):
        parse_users("alice:a\nbob\n")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write certificate and key of 127.0.0.1 into one file."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("needs openssl to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    key, made, both = folder / "key", folder / "cert", folder / "both.pem"
    command = [program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    subprocess.run([*command, *names, "-keyout", str(key), "-out", str(made)], check=True, capture_output=True)
    both.write_text(made.read_text() + key.read_text())
    return both


def test_clients_speak_tls(certificate: Path) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate)

    async def session() -> None:
        async with running(tls=server) as ready:
            trusting = ssl.create_default_context(cafile=str(certificate))
            client = await Client.to(ready.listen, ssl=trusting)
            assert (await client.ask("api_versions", 0)).api_keys
            client.close()
            bare = await Client.to(ready.listen)
            bare.send("api_versions", 0)
            assert await bare.closed()

    play(session())


# rights


RULES = """
allow User:alice Read,Describe Group orders-*   # and what Read allows
allow User:alice Read          Topic *
deny  User:alice All           Topic secret
allow User:*     Describe      Cluster * from 10.0.0.7
"""


@pytest.mark.parametrize(
    ("who", "host", "operation", "resource", "name", "allowed"),
    [
        ("alice", "h", Operation.READ, Resource.GROUP, "orders-1", True),
        ("alice", "h", Operation.DELETE, Resource.GROUP, "orders-1", False),
        ("alice", "h", Operation.READ, Resource.GROUP, "other", False),
        ("alice", "h", Operation.DESCRIBE, Resource.TOPIC, "any", True),
        ("alice", "h", Operation.WRITE, Resource.TOPIC, "any", False),
        ("alice", "h", Operation.READ, Resource.TOPIC, "secret", False),
        ("bob", "h", Operation.READ, Resource.TOPIC, "any", False),
        ("bob", "10.0.0.7", Operation.DESCRIBE, Resource.CLUSTER, "kafka-cluster", True),
        ("bob", "10.0.0.8", Operation.DESCRIBE, Resource.CLUSTER, "kafka-cluster", False),
        ("root", "h", Operation.ALL, Resource.TOPIC, "secret", True),
    ],
)
def test_rules(who: str, host: str, operation: Operation, resource: Resource, name: str, *, allowed: bool) -> None:
    acl = Acl(parse_rules(RULES), ["User:root"])
    assert acl.allows(f"User:{who}", host, operation, resource, name) is allowed


@pytest.mark.parametrize(
    "line", ["allow alice Read Topic t", "let User:a Read Topic t", "allow User:a Red Topic t", "x"]
)
def test_a_file_of_rules_names_its_wrong_line(line: str) -> None:
    with pytest.raises(BadRule, match="line 2"):
        parse_rules(f"allow User:a All * *\n{line}\n")


def test_rights_are_asked_for_at_groups_and_topics() -> None:
    rules = "allow User:ANONYMOUS Read Group mine\nallow User:ANONYMOUS Read Topic open\n"

    async def session() -> None:
        acl = Acl(parse_rules(rules))
        async with running(acl=acl, topics={"open": 1, "closed": 1}) as ready:
            client = await Client.to(ready.listen)
            answer = await client.ask("join_group", 9, **{**JOIN, "group_id": "other"})
            assert answer.error_code == Code.group_authorization_failed
            answer = await client.ask("join_group", 9, **{**JOIN, "group_id": "mine"})
            assert answer.error_code == Code.member_id_required
            listed = await client.ask("metadata", 12, topics=None)
            assert [topic.name for topic in listed.topics] == ["open"]
            asked = await client.ask("metadata", 9, topics=[{"name": "closed"}])
            assert asked.topics[0].error_code == Code.topic_authorization_failed
            found = await client.ask("find_coordinator", 4, coordinator_keys=("other", "mine"))
            assert [row.error_code for row in found.coordinators] == [Code.group_authorization_failed, Code.none]
            fetched = await client.ask(
                "fetch",
                12,
                max_bytes=1000,
                topics=[
                    {"topic": name, "partitions": [{"partition": 0, "partition_max_bytes": 1000}]}
                    for name in ("open", "closed")
                ],
            )
            codes = [row.partitions[0].error_code for row in fetched.responses]
            assert codes == [Code.none, Code.topic_authorization_failed]
            beat = {"group_id": "mine", "member_id": "m", "member_epoch": 0, "rebalance_timeout": 1000}
            beat |= {"topic_partitions": (), "subscribed_topic_names": ("open", "closed")}
            answer = await client.ask("consumer_group_heartbeat", 1, **beat)
            assert answer.error_code == Code.topic_authorization_failed
            made = await client.ask("create_topics", 7, topics=[{"name": "x", "num_partitions": 1}])
            assert made.topics[0].error_code == Code.topic_authorization_failed
            commit = {"topics": [{"name": name, "partitions": [{"partition_index": 0}]} for name in ("open", "closed")]}
            answer = await client.ask("offset_commit", 8, group_id="mine", **commit)
            codes = [row.partitions[0].error_code for row in answer.topics]
            assert sorted(codes) == [Code.none, Code.topic_authorization_failed]

    play(session())


# the second port


async def http(at: Address, request: str) -> tuple[int, str]:
    reader, writer = await asyncio.open_connection(at.host, at.port)
    writer.write(request.encode())
    head, _, body = (await asyncio.wait_for(reader.read(), 60)).decode().partition("\r\n\r\n")
    writer.close()
    return int(head.split(" ")[1]), body


def test_the_second_port_shows_groups_lag_rebalances_and_numbers() -> None:
    async def session() -> None:
        async with running(status=LOOPBACK, topics={"t": 2}) as ready:
            assert ready.status is not None
            client = await Client.to(ready.listen)
            beat = {"group_id": "shown", "member_id": "me", "member_epoch": 0, "rebalance_timeout": 1000}
            beat |= {"topic_partitions": (), "subscribed_topic_names": ("t",)}
            beat_answer = await client.ask("consumer_group_heartbeat", 1, **beat)
            assert beat_answer.error_code == Code.none
            rows = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 0}]}]
            who = {"group_id": "shown", "member_id": "me", "generation_id_or_member_epoch": beat_answer.member_epoch}
            await client.ask("offset_commit", 9, topics=rows, **who)
            ready.node.topics.by_name["t"].logs[0].durable(7)
            status, body = await http(ready.status, "GET /state HTTP/1.1\r\n\r\n")
            assert status == 200
            state = json.loads(body)
            (group,) = state["groups"]
            assert (group["group"], group["type"], group["lag"]) == ("shown", "consumer", 7)
            assert group["members"][0]["target"] == {"t": [0, 1]}
            assert state["rebalances"][0]["cause"] == "join of member me (client client at /127.0.0.1)"
            status, body = await http(ready.status, "GET /metrics HTTP/1.1\r\n\r\n")
            assert 'fencepost_requests_total{api="consumer_group_heartbeat",version="1"} 1' in body.splitlines()
            assert "fencepost_connections 1" in body.splitlines()
            assert (await http(ready.status, "GET / HTTP/1.1\r\n\r\n"))[1].startswith("<!doctype html>")
            assert (await http(ready.status, "GET /etc HTTP/1.1\r\n\r\n"))[0] == 404
            assert (await http(ready.status, "POST / HTTP/1.1\r\n\r\n"))[0] == 405
            assert (await http(ready.status, "\x16\x03\r\n\r\n"))[0] == 400

    play(session())


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        ("allow User:ANONYMOUS Describe,Read Topic *", Code.cluster_authorization_failed),
        ("allow User:ANONYMOUS Write Topic one", Code.none),
        ("allow User:ANONYMOUS IdempotentWrite Cluster *", Code.none),
        ("allow User:ANONYMOUS Write Topic one*\ndeny User:* Write Topic o*", Code.cluster_authorization_failed),
    ],
)
def test_an_idempotent_producer_needs_a_right_to_write(rules: str, code: Code) -> None:
    async def session() -> None:
        async with running(acl=Acl(parse_rules(rules))) as ready:
            client = await Client.to(ready.listen)
            answer = await client.ask("init_producer_id", 4, transactional_id=None, transaction_timeout=1_000)
            assert answer.error_code == code

    play(session())


def test_a_topic_is_created_only_for_clients_with_the_right() -> None:
    rules = "allow User:ANONYMOUS Describe Topic *\nallow User:ANONYMOUS Create Topic mine*\n"

    async def session() -> None:
        async with running(acl=Acl(parse_rules(rules)), auto_create=2) as ready:
            client = await Client.to(ready.listen)
            rows = [{"name": "other"}, {"name": "mine"}]
            answer = await client.ask("metadata", 9, topics=rows, allow_auto_topic_creation=True)
            codes = {topic.name: topic.error_code for topic in answer.topics}
            assert codes == {"other": Code.unknown_topic_or_partition, "mine": Code.none}
            assert [*ready.node.topics.by_name] == ["mine"]

    play(session())
