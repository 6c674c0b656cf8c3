"""Trials of faults: the tests of the fault's area, run on a copy of the product that has it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..replacement import DoesNotApply, Replacement
from .copying import environment, faulty_copy
from .fault import Area, Fault

#: The longest run, in seconds. A longer one is ended, and the test that was running counts as the killer.
LIMIT_S: Final = 150.0
_SERVER, _STORE, _WORK = "tests/unit/server", "tests/unit/store", "tests/unit/work"
_CLIENTS: Final = "tests/wire/test_serve.py"
#: random scripts, compared with recorded answers of Kafka
_ANSWERED: Final = "tests/wire/test_beside_random.py::test_serve_answers_as_kafka_has_answered"
_SCRIPTS: Final = f"{_ANSWERED}[plain]"
_RIGHTS: Final = f"{_ANSWERED}[rights]"
#: scripts that once differed
_ONCE_DIFFERED: Final = "tests/wire/test_beside_random.py::test_serve_answers_a_kept_script_as_kafka_has_answered"
#: The tests of each area, the quickest and most specific first.
TESTS: Final[dict[Area, tuple[str, ...]]] = {
    Area.DATA: (
        f"{_SERVER}/test_partition.py", f"{_SERVER}/test_partition_machine.py", f"{_SERVER}/test_failing_store.py",
        f"{_SERVER}/test_kept_batches.py", f"{_SERVER}/test_waiting_fetch.py", f"{_SERVER}/test_answers.py",
        f"{_SERVER}/test_restarts.py", _ONCE_DIFFERED, _SCRIPTS, _CLIENTS,
    ),
    Area.SECURITY: (
        f"{_SERVER}/test_acl_machine.py", f"{_SERVER}/test_login_machine.py", f"{_SERVER}/test_limits_and_rights.py",
        f"{_WORK}/test_login.py", _RIGHTS,
    ),
    Area.TRANSACTIONS: (
        f"{_SERVER}/test_transaction_machine.py", f"{_SERVER}/test_failing_store.py", f"{_SERVER}/test_answers.py",
        _ONCE_DIFFERED, _SCRIPTS, _CLIENTS,
    ),
    Area.CONFIGURATION: (
        f"{_SERVER}/test_partition.py", f"{_SERVER}/test_serve_command.py", f"{_SERVER}/test_waiting_fetch.py",
        f"{_SERVER}/test_answers.py", f"{_SERVER}/test_restarts.py", _SCRIPTS, _RIGHTS, _CLIENTS,
    ),
    Area.CONNECTIONS: (
        f"{_SERVER}/test_connection_machine.py", f"{_SERVER}/test_limits_and_rights.py",
        f"{_SERVER}/test_direct_answers.py",
    ),
    Area.REBALANCES: ("tests/unit/core/test_rebalance_reports.py", f"{_SERVER}/test_rebalance_page.py"),
    Area.STORE: (
        f"{_STORE}/test_contract.py", f"{_STORE}/test_upgrade.py", f"{_STORE}/test_lease.py",
        f"{_STORE}/test_lease_machine.py", f"{_STORE}/test_store_machine.py",
        f"{_STORE}/test_postgres.py", f"{_STORE}/test_sqlite.py", f"{_STORE}/test_killed.py",
        f"{_SERVER}/test_kept_batches.py",
    ),
    Area.HOST: ("tests/unit/host", "tests/unit/aio", _CLIENTS),
    Area.AIO: (
        "tests/unit/aio", "tests/unit/core/test_aio.py", "tests/unit/core/test_consumer_aio.py", 
        f"{_SERVER}/test_faults.py::test_coordinators_move_and_writes_fail",
    ),
    Area.WORK: (
        f"{_WORK}/test_bounds.py", f"{_WORK}/test_share.py", f"{_WORK}/test_driver.py", f"{_WORK}/test_remote.py",
        f"{_WORK}/test_workers.py",
    ),
    Area.REMOTE: (
        f"{_WORK}/test_login.py", f"{_WORK}/test_cluster.py", f"{_WORK}/test_connection.py",
        f"{_WORK}/test_remote.py",
        f"{_SERVER}/test_faults.py::test_workers_live_through_a_plan_that_is_drawn",
    ),
}  # fmt: skip
#: Excludes tests that only make test-all runs, and tests that need Kafka.
_LEFT_OUT: Final = "not all and not jvm and not broker"
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
_STARTED: Final = re.compile(r"^(tests/\S+::\S+)", re.MULTILINE)
_PASSED: Final = 0


class CannotTry(Exception):
    """The tests did not run; the message is the end of pytest's output."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The result for one fault. ``killer``: the first test that failed; None if all passed. ``broken``: why the tests
    did not run."""

    fault: str
    killer: str | None
    broken: str = ""


def try_tests(
    name: str, replacements: Sequence[Replacement], tests: Sequence[str], root: Path, limit_s: float = LIMIT_S
) -> Trial:
    """Run these tests of the checkout ``root`` with the replacements planted, up to the first that fails. Raises
    ``DoesNotApply``, ``CannotTry``."""
    words = [sys.executable, "-m", "pytest", "-x", "-v", "--tb=no", "-p", "no:cacheprovider", "-m", _LEFT_OUT, *tests]
    with tempfile.TemporaryDirectory(prefix="fencepost-fault-") as folder:
        faulty_copy(replacements, Path(folder))
        with tempfile.TemporaryFile("w+") as said:
            process = subprocess.Popen(
                words, cwd=root, env={**environment(Path(folder)), "PYTHONUNBUFFERED": "1"},
                stdout=said, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            try:
                status: int | None = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                _end(process)
            said.seek(0)
            text = said.read()
    return Trial(name, _killer(status, text))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and all that it started, such as servers."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _killer(status: int | None, text: str) -> str | None:
    started = _STARTED.findall(text)
    if status is None and started:
        return f"{started[-1]} (does not end)"
    failed = _FAILED.search(text)
    if failed is not None:
        return failed[1]
    if status == _PASSED:
        return None
    raise CannotTry("\n".join(text.splitlines()[-5:]))


def tests_of(fault: Fault) -> tuple[str, ...]:
    """The tests to run for a fault."""
    return (*TESTS[fault.area], *fault.tests)


def try_all(faults: Sequence[Fault], root: Path, workers: int = 1) -> Iterator[Trial]:
    """Run the tests of its area for each fault, in order; ``workers`` of them at the same time."""

    def one(fault: Fault) -> Trial:
        try:
            return try_tests(fault.name, fault.replacements, tests_of(fault), root)
        except (DoesNotApply, CannotTry) as reason:
            return Trial(fault.name, None, str(reason))

    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(one, faults)
