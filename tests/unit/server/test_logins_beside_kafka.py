"""``fencepost serve`` answers every log-in, right or wrong, as Kafka 4.4.0 does."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Final

import pytest

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.targets.broker import Broker
from fencepost_conformance.targets.jvm import jars
from fencepost_conformance.targets.jvm.releases import broker_artifacts
from fencepost_server.options import Address, Limits
from fencepost_server.security.sasl import ITERATIONS, Users

from .login_sequences import LIFETIME_MS, USERS, Visitor, answers, renewals, sequences
from .scram_client import DIGESTS
from .served import Client, play, running

RELEASE: Final = "4.4.0"
RECORDED: Final = Path(__file__).with_name("logins-4.4.0.json")
#: to a broker whose log-ins end
RENEWALS: Final = Path(__file__).with_name("renewals-4.4.0.json")
#: Kafka's number of a mechanism
_NUMBERS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
#: Kafka learns this user only by AlterUserScramCredentials, with all the others
_LAST: Final = "carol"


async def here(login_ms: int = 0) -> dict[str, list[str]]:
    limits = Limits(login_s=600.0, drain_s=2.0)  # what is closed is closed for what was said
    async with running(users=Users(USERS), limits=limits, login_ms=login_ms) as ready:
        return await played(ready.listen, login_ms)


async def played(at: Address, login_ms: int) -> dict[str, list[str]]:
    return await (answers(at, renewals(), together=50) if login_ms else answers(at, sequences()))


async def there(broker: Broker, login_ms: int = 0) -> dict[str, list[str]]:
    """Kafka's answers, once it knows all users."""
    admin = await Client.to(Address(host="127.0.0.1", port=broker.port))
    for mechanism, digest in DIGESTS.items():
        rows = []
        for name, password in USERS.items():
            salted = hashlib.pbkdf2_hmac(digest, password.encode(), b"salt", ITERATIONS)
            rows.append({"name": name, "mechanism": _NUMBERS[mechanism], "iterations": ITERATIONS, "salt": b"salt",
                         "salted_password": salted})  # fmt: skip
        answer = await admin.ask("alter_user_scram_credentials", 0, deletions=[], upsertions=rows)
        assert {row.error_code for row in answer.results} == {0}, answer
    secured = Address(host="127.0.0.1", port=broker.secured_port)
    login = [("shake", 1, "SCRAM-SHA-512"), ("first", _LAST, USERS[_LAST], {}), ("proof", "")]
    async with asyncio.timeout(60):
        while (await Visitor(await Client.to(secured)).play(login))[-1] != "0 it knows the user":
            await asyncio.sleep(0.1)
    return await played(secured, login_ms)


def compare(theirs: dict[str, list[str]], ours: dict[str, list[str]]) -> None:
    wrong = [
        f"{words}: Kafka {theirs.get(words)}, here {ours[words]}" for words in ours if ours[words] != theirs.get(words)
    ]
    assert not wrong, "\n".join(wrong)


def test_log_ins_are_answered_as_kafka_has_answered_them() -> None:
    async def session() -> None:
        compare(json.loads(RECORDED.read_text()), await here())

    play(session())


def test_renewals_are_answered_as_kafka_has_answered_them() -> None:
    async def session() -> None:
        compare(json.loads(RENEWALS.read_text()), await here(LIFETIME_MS))

    play(session())


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.all
@pytest.mark.parametrize(("record", "login_ms"), [(RECORDED, 0), (RENEWALS, LIFETIME_MS)], ids=["plain", "renewals"])
def test_kafka_answers_log_ins_as_recorded(tmp_path: Path, record: Path, login_ms: int) -> None:
    """What Kafka answers now is kept in a file of pytest's folder, in the form of the record."""
    try:
        jars.fetch(*broker_artifacts(RELEASE))
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])

    async def session() -> None:
        theirs = await there(broker, login_ms)
        (tmp_path / record.name).write_text(json.dumps(theirs, indent=1) + "\n")
        compare(json.loads(record.read_text()), theirs)
        assert theirs.keys() == (renewals() if login_ms else sequences()).keys()

    settings = {"connections.max.reauth.ms": str(login_ms)} if login_ms else {}
    with Broker(RELEASE, logins=USERS, settings=settings) as broker:
        play(session())
