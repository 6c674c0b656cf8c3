"""Fixtures and hooks for all tests. At its end a run lists each reason for skipped tests once, and counts the tests
that only ``make test-all`` runs."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import settings

from fencepost.protocol.profile import Profile
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.generate.generator import Generated, generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.targets.core import Core
from fencepost_conformance.targets.jvm.assignors import KafkaAssignors
from fencepost_conformance.traces.files import EventTrace, read_traces

# machines are shared, so an example may take long
settings.register_profile("fencepost", deadline=None)
settings.load_profile("fencepost")
#: the number of tests that were left out because only ``make test-all`` runs them
LEFT = pytest.StashKey[int]()
TESTS: Final = Path(__file__).parent
#: The files that take longest, longest first. With several workers they begin first, so that the last file of a run is
#: a short one.
LONGEST: Final = (
    "quality/test_mutants.py",
    "spark/test_pipeline.py",
    "quality/test_virtual_time.py",
    "wire/test_jvm_diff.py",
    "model/test_spec.py",
    "spark/test_cluster.py",
    "model/test_mixed_system.py",
    "wire/test_beside_random.py",
    "wire/test_serve_judged.py",
    "quality/test_product_consumer.py",
    "unit/conformance/test_planted_faults.py",
    "quality/test_hypothesis_consumer.py",
    "wire/test_corpus.py",
    "wire/test_jvm_builds.py",
    "wire/test_jvm_assignors.py",
    "model/test_e1.py",
    "unit/store/test_killed.py",
    "wire/test_validate.py",
    "unit/reader/test_kafka_reads_in_a_group.py",
    "unit/conformance/test_interruption.py",
    "model/test_consumer_system.py",
    "quality/test_hypothesis_core.py",
    "wire/test_jvm_records.py",
    "model/test_explore_configurations.py",
    "quality/test_product.py",
    "quality/test_compiled_core.py",
    "unit/conformance/test_diff.py",
    "wire/test_sweep.py",
    "model/test_explore_spread.py",
    "quality/test_simulate_consumer.py",
    "model/test_consumer_group_invariants.py",
    "wire/test_serve_data.py",
    "quality/test_simulate_cluster.py",
    "wire/test_serve_beside_kafka.py",
    "wire/test_java_client.py",
    "quality/test_simulate_mixed.py",
    "quality/test_planted_in_machines.py",
    "quality/test_any_stream.py",
    "wire/test_workers_on_kafka.py",
    "unit/work/test_workers.py",
    "wire/test_jvm_consumer.py",
    "model/test_commits_in_groups.py",
    "unit/cli/test_readme.py",
    "unit/server/test_nodes.py",
    "unit/member/test_kafka_client_compares.py",
    "unit/conformance/test_command_line.py",
    "wire/test_record_live.py",
    "unit/wire/test_search.py",
    "model/test_promises_ask_the_model.py",
    "quality/test_storm.py",
    "model/test_classic_trace.py",
    "wire/test_jvm.py",
    "wire/test_jvm_edges.py",
    "wire/test_jvm_atomic.py",
    "wire/test_jvm_linger.py",
    "unit/cli/test_rules.py",
    "unit/conformance/test_over_wire.py",
    "wire/test_serve_java.py",
    "wire/test_secured.py",
    "wire/test_serve_killed.py",
    "quality/test_hash_seeds.py",
    "quality/test_any_offsets.py",
)
Kept = Callable[..., list[Generated]]
AssignorsOf = Callable[[str], AbstractContextManager[KafkaAssignors]]
Traces = Callable[[GroupProtocol, Profile, int], Iterator[Generated]]


@pytest.fixture(scope="session")
def kept() -> Kept:
    """Return the traces of ``tests/kept`` of a protocol and a profile, run on the core: all seeds, or only these."""

    def traces(protocol: GroupProtocol, profile: Profile, *seeds: int) -> list[Generated]:
        found = []
        for trace in read_traces(TESTS / "kept" / f"{protocol}.jsonl.gz"):
            assert isinstance(trace, EventTrace)
            if trace.profile != profile or (seeds and trace.seed not in seeds):
                continue
            seen, failure = Core().run_until_raised(trace.settings, profile, trace.events)
            found.append(Generated(trace.seed or 0, trace.settings, profile, trace.events, tuple(seen), failure))
        assert len(found) >= max(len(seeds), 1)
        return found

    return traces


@pytest.fixture(scope="session")
def traces(kept: Kept) -> Traces:
    """Return ``count`` random traces of a protocol and a profile, and the kept ones."""

    def made(protocol: GroupProtocol, profile: Profile, count: int) -> Iterator[Generated]:
        for seed in range(count):
            yield generate(seed, profile, 60, protocol)
        yield from kept(protocol, profile)

    return made


@pytest.fixture(scope="session")
def assignors_of() -> AssignorsOf:
    """Open Kafka's assignors of a release in a separate JVM; skip the test if they cannot be installed."""

    @contextmanager
    def opened(release: str) -> Iterator[KafkaAssignors]:
        try:
            asked = KafkaAssignors(release)
        except CannotRun as reason:
            pytest.skip(str(reason).splitlines()[0])
        try:
            yield asked
        finally:
            asked.close()

    return opened


def pytest_configure() -> None:
    """Switch garbage collection off while tests are collected. Collected tests live to the end of the run."""
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        places = {TESTS / name: place for place, name in enumerate(LONGEST)}
        items.sort(key=lambda item: places.get(item.path, len(places)))


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_deselected(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("all"):
            item.config.stash[LEFT] = item.config.stash.get(LEFT, 0) + 1


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left"] = session.config.stash.get(LEFT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the count of left-out tests from a worker of ``--numprocesses``; it is the same for all workers."""
    node.config.stash[LEFT] = getattr(node, "workeroutput", {}).get("left", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    reasons = Counter(
        report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        for report in terminalreporter.stats.get("skipped", [])
    )
    terminalreporter.section("not run")
    if not reasons:
        terminalreporter.write_line("nothing was skipped")
    left = config.stash.get(LEFT, 0)
    if left:
        terminalreporter.write_line(f"{left} left to make test-all: they do more of what others sample")
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} skipped: {reason.removeprefix('Skipped: ')}")
