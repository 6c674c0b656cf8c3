"""``fencepost serve`` answers every log-in, right or wrong, as Kafka 4.4.0 does."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Final

import pytest

from fencepost_conformance.console import CannotRun
from fencepost_conformance.jvm import jars
from fencepost_conformance.jvm.releases import broker_artifacts
from fencepost_conformance.targets.broker import Broker
from fencepost_server.options import Address, Limits
from fencepost_server.security.sasl import ITERATIONS, Users

from .login_sequences import USERS, Visitor, answers, sequences
from .scram_client import DIGESTS
from .served import Client, play, running

RELEASE: Final = "4.4.0"
RECORDED: Final = Path(__file__).with_name("logins-4.4.0.json")
#: Kafka's number of a mechanism
_NUMBERS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
#: Kafka learns this user only by AlterUserScramCredentials, with all the others
_LAST: Final = "carol"


async def here() -> dict[str, list[str]]:
    limits = Limits(login_s=600.0, drain_s=2.0)  # a connection is closed because of the message
    async with running(users=Users(USERS), limits=limits) as ready:
        return await answers(ready.listen)


async def there(broker: Broker) -> dict[str, list[str]]:
    """Return Kafka's answers, once it knows all users."""
    admin = await Client.to(Address(host="127.0.0.1", port=broker.port))
    for mechanism, digest in DIGESTS.items():
        rows = []
        for name, password in USERS.items():
            salted = hashlib.pbkdf2_hmac(digest, password.encode(), b"salt", ITERATIONS)
            rows.append({"name": name, "mechanism": _NUMBERS[mechanism], "iterations": ITERATIONS, "salt": b"salt",
                         "salted_password": salted})  # fmt: skip
        told = await admin.ask("alter_user_scram_credentials", 0, deletions=[], upsertions=rows)
        assert {row.error_code for row in told.results} == {0}, told
    secured = Address(host="127.0.0.1", port=broker.secured_port)
    login = [("shake", 1, "SCRAM-SHA-512"), ("first", _LAST, USERS[_LAST], {}), ("proof", "")]
    async with asyncio.timeout(60):
        while (await Visitor(await Client.to(secured)).play(login))[-1] != "0 it knows the user":
            await asyncio.sleep(0.1)
    return await answers(secured)


def compare(theirs: dict[str, list[str]], ours: dict[str, list[str]]) -> None:
    wrong = [
        f"{words}: Kafka {theirs.get(words)}, here {ours[words]}" for words in ours if ours[words] != theirs.get(words)
    ]
    assert not wrong, "\n".join(wrong)


def test_log_ins_are_answered_as_kafka_has_answered_them() -> None:
    async def session() -> None:
        compare(json.loads(RECORDED.read_text()), await here())

    play(session())


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.all
def test_kafka_answers_log_ins_as_recorded(tmp_path: Path) -> None:
    """Kafka's present answers are written to a file in pytest's folder, in the form of the record."""
    try:
        jars.fetch(*broker_artifacts(RELEASE))
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])

    async def session() -> None:
        theirs = await there(broker)
        (tmp_path / RECORDED.name).write_text(json.dumps(theirs, indent=1) + "\n")
        compare(json.loads(RECORDED.read_text()), theirs)
        assert theirs.keys() == sequences().keys()

    with Broker(RELEASE, logins=USERS) as broker:
        play(session())
