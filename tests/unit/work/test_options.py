"""Wrong options of a worker: each is rejected when the worker is made, with its name, its value and an accepted one."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from fencepost.member.events import Failure, FailureKind
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.settings import BadSettings
from fencepost.work import WorkerFailed
from fencepost.work.worker import Options

from .teams import CLASSIC, broker

TIMES = [name for name in Options.__annotations__ if name.endswith("_ms")]


def refused(kind: type[Exception], group_id: Any = "team", topics: Any = ("orders",), **options: Any) -> str:
    """Return the error of ``groups.worker``, one line."""
    messages: list[str] = []

    async def main() -> None:
        async with broker() as groups:
            with pytest.raises(kind) as raised:
                groups.worker(group_id, topics, **options)
            messages.append(str(raised.value))

    asyncio.run(main())
    assert "\n" not in messages[0]
    return messages[0]


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("wrong", ["5s", 1.5, True, 0, -1, 2**31])
def test_a_time_is_a_number_of_milliseconds(name: str, wrong: Any) -> None:
    """0 is rejected too: a worker without time waits for ever, or asks without a pause."""
    message = refused(BadSettings, protocol="classic", **{name: wrong})
    assert message == (f"{name} must be an integer of milliseconds from 1 to 2147483647, such as 5_000 (got {wrong!r})")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group_id": ""}, "group_id must be the name of the group, such as 'orders' (got '')"),
        ({"group_id": None}, "group_id must be the name of the group, such as 'orders' (got None)"),
        ({"topics": []}, "topics must name at least one topic, as in ['orders'] (got none)"),
        ({"topics": ["orders", ""]}, "each topic must be the name of a topic, such as 'orders' (got '')"),
        ({"topics": re.compile("")}, "topics must be an expression of text"),
        ({"instance_id": 5}, "instance_id must be a name, or None (got 5)"),
        ({"instance_id": ""}, "instance_id must be a name, or None (got '')"),
        ({"assignor": ""}, "assignor must be a name, or None (got '')"),
        ({"protocol": "clasic"}, "protocol must be 'consumer' or 'classic' (got 'clasic')"),
        (
            {"protocol": "classic", "assignor": "range"},
            "assignor is an option of protocol='consumer' (got 'range'); with 'classic' the members assign",
        ),
        (
            {"session_timeout_ms": 6_000},
            "session_timeout_ms is an option of protocol='classic' (got 6000); with 'consumer' the coordinator decides "
            "(group.consumer.session.timeout.ms)",
        ),
        (
            {"protocol": "consumer", "heartbeat_interval_ms": 500},
            "(group.consumer.heartbeat.interval.ms)",
        ),
        (
            {"protocol": "classic", "session_timeout_ms": 1_000},
            "heartbeat_interval_ms must be less than session_timeout_ms (1000; got 3000)",
        ),
    ],
)
def test_a_value_that_no_worker_has_is_named(options: dict[str, Any], message: str) -> None:
    assert message in refused(BadSettings, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topics": 5}, "topics must be a list of names or a compiled expression (got 5)"),
        ({"topics": [b"orders"]}, "each topic must be the name of a topic, such as 'orders' (got b'orders')"),
        ({"topics": [["orders"]]}, "each topic must be the name of a topic, such as 'orders' (got ['orders'])"),
        ({"gained": "print"}, "gained must be a function that takes a set of partitions (got 'print')"),
        ({"sesion_timeout_ms": 5}, "a worker has no option 'sesion_timeout_ms'; did you mean session_timeout_ms?"),
        ({"zzz": 5}, "a worker has no option 'zzz'; the options are protocol, instance_id, assignor"),
    ],
)
def test_a_type_that_no_worker_takes_is_named(options: dict[str, Any], message: str) -> None:
    assert message in refused(TypeError, **options)


def test_options_that_are_refused_leave_no_task_behind() -> None:
    async def main() -> None:
        async with broker() as groups:
            before = asyncio.all_tasks()
            for options in ({"rebalance_timeout_ms": "5s"}, {"metadata_max_age_ms": None}, {"gained": 1}):
                with pytest.raises((BadSettings, TypeError)):
                    groups.worker("team", ["orders"], **options)
            assert asyncio.all_tasks() == before

    asyncio.run(main())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"assignor": "unifrom"},
            'the coordinator has no assignor with the name in assignor=; leave the option out, or write "uniform" or',
        ),
        (
            {"protocol": "classic", "session_timeout_ms": 50, "heartbeat_interval_ms": 10},
            "the coordinator does not allow session_timeout_ms=",
        ),
    ],
)
def test_an_error_of_the_coordinator_names_the_option_to_change(options: dict[str, Any], message: str) -> None:
    async def main() -> None:
        async with broker() as groups, groups.worker("team", ["orders"], **options) as worker:
            with pytest.raises(WorkerFailed, match=re.escape(message)):
                await anext(worker)

    asyncio.run(asyncio.wait_for(main(), 30))


#: errors that end a member permanently (K-JOIN-12, N-ERR-04), and that a user can fix
FINAL = [
    ErrorCode.UNSUPPORTED_VERSION, ErrorCode.UNSUPPORTED_ASSIGNOR, ErrorCode.UNRELEASED_INSTANCE_ID,
    ErrorCode.FENCED_INSTANCE_ID, ErrorCode.INVALID_SESSION_TIMEOUT, ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_REGULAR_EXPRESSION, ErrorCode.GROUP_ID_NOT_FOUND,
]  # fmt: skip


@pytest.mark.parametrize("error", FINAL)
def test_a_final_error_names_a_remedy(error: ErrorCode) -> None:
    message = str(WorkerFailed(Failure(FailureKind.ANSWER, error)))
    assert message.startswith(f"the worker has failed: {error.name}; ")
    assert len(message) > len(error.name) + 40


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_the_options_of_each_protocol_are_taken(protocol: str) -> None:
    own: dict[str, Any] = CLASSIC if protocol == "classic" else {"assignor": "range"}

    async def main() -> None:
        async with broker() as groups, groups.worker("team", ["orders"], protocol=protocol, **own) as worker:  # type: ignore[arg-type]
            assert len(await anext(worker)) == 6

    asyncio.run(asyncio.wait_for(main(), 30))
