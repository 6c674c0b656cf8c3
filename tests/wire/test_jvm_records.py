"""Records in bytes: the codec writes, reads and rejects as Kafka's serde does."""

from __future__ import annotations

from collections.abc import Iterator
from random import SystemRandom

import pytest

from fencepost.codec import LAYOUTS, Codec
from fencepost.protocol.consumer_records import ConsumerGroupRegularExpressionKey as RegexKey
from fencepost.protocol.consumer_records import ConsumerGroupRegularExpressionValue as RegexValue
from fencepost.protocol.records import Record
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.run.mutants import codec_faults
from fencepost_conformance.run.mutants.mutant import Mutant, planted
from fencepost_conformance.targets.jvm.serde import KafkaSerde, client, compare, kept
from fencepost_conformance.targets.jvm.serde.loading import KafkaLoader, damaged_logs, differences, taken

pytestmark = pytest.mark.jvm
FRESH = 1_200
SOME = {"kafka-4.0", "kafka-4.4"}
Pair = tuple[KafkaSerde, Codec, str]


@pytest.fixture(
    scope="module",
    params=[name if name in SOME else pytest.param(name, marks=pytest.mark.all) for name in kept.RELEASES],
)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    yield from opened(request.param)


@pytest.fixture(scope="module")
def newest() -> Iterator[Pair]:
    yield from opened("kafka-4.4")


def opened(name: str) -> Iterator[Pair]:
    try:
        kafka = KafkaSerde(kept.RELEASES[name])
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])
    try:
        yield kafka, Codec(LAYOUTS[name]), kept.RELEASES[name]
    finally:
        kafka.close()


@pytest.fixture
def seed() -> str:
    return str(SystemRandom().getrandbits(32))


def test_records_are_written_as_kafka_writes_them(pair: Pair, seed: str) -> None:
    kafka, codec, _ = pair
    assert list(compare.writing(kafka, codec, seed, FRESH)) == [], f"seed {seed}"


def test_bytes_whole_and_damaged_are_read_as_kafka_reads_them(pair: Pair, seed: str) -> None:
    kafka, codec, _ = pair
    assert list(compare.reading(kafka, codec, seed, FRESH)) == [], f"seed {seed}"


def test_transaction_markers_match_kafkas(pair: Pair, seed: str) -> None:
    kafka, codec, _ = pair
    assert list(compare.markers(kafka, codec, seed, FRESH)) == [], f"seed {seed}"


def test_types_are_known_by_kafkas_names(pair: Pair) -> None:
    kafka, codec, _ = pair
    assert list(compare.names(kafka, codec)) == []


def test_kept_answers_of_kafka_are_current(pair: Pair) -> None:
    kafka, codec, release = pair
    assert tuple(kept.asked(kafka, codec, release)) == kept.kept()[release]


@pytest.mark.parametrize("size", [1_000_000, 1_000_001])
@pytest.mark.all
def test_a_list_may_be_as_long_as_the_release_allows(pair: Pair, size: int) -> None:
    """All its elements are present (F-REC-23)."""
    kafka, codec, _ = pair
    key, value = codec.encode(Record(RegexKey("g", "r"), RegexValue(("",) * size, version=1, timestamp=2)))
    (answer,) = kafka.ask([client.read(key, value)])
    theirs = compare.of_kafka(answer)
    assert compare.of_codec(codec, key, value) == theirs
    assert (theirs is compare.Refusal.TORN) is (size > (codec.layout.most_elements or size))


@pytest.mark.parametrize("fault", codec_faults.FAULTS, ids=lambda fault: fault.name)
def test_a_fault_in_the_codec_is_seen(newest: Pair, fault: Mutant) -> None:
    """An older release lacks some of the fields that faults are about."""
    kafka, codec, _ = newest
    with planted(fault):
        found = [compare.writing(kafka, codec, "seen", 400), compare.reading(kafka, codec, "seen", 2_500)]
        found.append(compare.markers(kafka, codec, "seen", 200))
        assert any(next(each, None) for each in found)


LOGS = 60


@pytest.fixture(scope="module", params=["kafka-4.4", pytest.param("kafka-4.3", marks=pytest.mark.all)])
def loader(request: pytest.FixtureRequest) -> Iterator[tuple[KafkaLoader, Codec]]:
    """Earlier releases have the loader elsewhere, and are not asked."""
    try:
        kafka = KafkaLoader(kept.RELEASES[request.param])
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])
    try:
        yield kafka, Codec(LAYOUTS[request.param])
    finally:
        kafka.close()


def test_a_load_accepts_the_records_that_kafkas_loader_accepts(loader: tuple[KafkaLoader, Codec], seed: str) -> None:
    """Logs on disk, with records of unknown types, torn ones and control batches (F-LOAD-02, F-REC-26)."""
    assert list(differences(*loader, seed, LOGS)) == [], f"seed {seed}"


@pytest.mark.parametrize("name", ["unknown-type-is-torn", "unknown-version-read", "commit-and-abort-taken-alike"])
def test_a_fault_in_loading_is_seen(loader: tuple[KafkaLoader, Codec], name: str) -> None:
    fault = next(fault for fault in codec_faults.FAULTS if fault.name == name)
    kafka, codec = loader
    logs = damaged_logs(codec, "seen", LOGS)
    with planted(fault):
        ours = [taken(codec, log) for log in logs]
    assert [taken(codec, log) for log in logs] == kafka.ask(logs) != ours


def test_a_layout_of_another_release_is_seen(pair: Pair) -> None:
    kafka, codec, _ = pair
    for layout in LAYOUTS.values():
        if layout == codec.layout:
            continue
        other = Codec(layout)
        found = (compare.writing(kafka, other, "seen", 800), compare.reading(kafka, other, "seen", 3_000))
        assert any(next(each, None) for each in found) or list(compare.names(kafka, other)), layout


def test_groups_belong_where_kafka_has_them(pair: Pair, seed: str) -> None:
    """Names of any characters, including unpaired surrogates (F-LOC-01, F-LOC-02, F-LOC-03, F-LOC-05)."""
    assert list(compare.places(pair[0], seed, 2_000)) == [], f"seed {seed}"
