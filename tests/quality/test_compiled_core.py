"""The compiled core gives the same outcomes as the sources for the same seeds, under every profile.

Compiling takes minutes, so ``make test`` compiles nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import SystemRandom

import pytest

from fencepost_conformance.run.compiled import build, is_of_these_sources, unavailable

ROOT = Path(__file__).parents[2]
COUNT = "40"
#: Compiled code accepts only values of the declared types, and no stand-in for a connection.
#: Tests that replace a function or constant of a compiled module, or give it an object of another class. Compiled code
#: does not notice the first, and refuses the second.
REPLACES = (
    "server/test_bad_frames.py::test_frames_that_no_client_sends",
    "server/test_login_machine.py::test_exchanges_follow_the_rfcs",
    "aio/test_engine.py::test_requests_that_wait_on_a_partition_that_cannot_be_given_up_get_stopped",
    "aio/test_engine.py::test_a_compaction_that_failed_is_not_the_last",
)
WHERE = "import fencepost.coordinator.dispatch as it; print(it.__file__)"

pytestmark = [pytest.mark.slow, pytest.mark.all, pytest.mark.skipif(bool(unavailable()), reason=unavailable())]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the compiled core, not optimised: that behaves the same and takes half the time."""
    folder = build(tmp_path_factory.mktemp("compiled") / "core", level=0)
    assert is_of_these_sources(folder)
    return folder


@pytest.fixture(scope="module")
def compiled_codec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which only the codec is compiled."""
    folder = build(tmp_path_factory.mktemp("compiled") / "codec", level=0, codec_alone=True)
    assert is_of_these_sources(folder)
    return folder


def run(words: list[str], path: Path) -> str:
    env = os.environ | {"PYTHONPATH": str(path), "PYTHONHASHSEED": "0"}
    return subprocess.run([sys.executable, *words], env=env, capture_output=True, text=True, check=True).stdout


def test_both_do_the_same(compiled: Path) -> None:
    assert ".so" in run(["-c", WHERE], compiled)
    assert run(["-c", WHERE], ROOT / "impl").strip().endswith(".py")
    first = str(SystemRandom().randrange(10**12))
    words = ["-m", "tools.digests", first, COUNT, "--seeds"]
    of_sources = run(words, ROOT / "impl").splitlines()
    assert len(of_sources) > 7 * 3 * int(COUNT)
    assert [*zip(of_sources, run(words, compiled).splitlines(), strict=True)] == [(row, row) for row in of_sources]


@pytest.mark.parametrize("built", ["compiled_codec", "compiled"])
def test_the_codec_writes_and_reads_the_same(request: pytest.FixtureRequest, built: str) -> None:
    """The compiled codec gives the records kept of Kafka's serde, and a digest of random records (F-REC-20,
    F-REC-22)."""
    compiled: Path = request.getfixturevalue(built)
    seed = SystemRandom().randrange(10**12)
    words = [
        "-c",
        "import hashlib; from random import Random; import fencepost.codec.reading as it;"
        "from fencepost.codec import LAYOUTS, Codec, CodecError;"
        "from fencepost_conformance.targets.jvm.serde import draw, kept;"
        "print(it.__file__); print(list(kept.wrongs())); digest = hashlib.sha256()\n"
        "for layout in LAYOUTS.values():\n"
        f"    codec, rng = Codec(layout), Random({seed})\n"
        "    for _ in range(600):\n"
        "        record = draw.record(rng); digest.update(repr(codec.encode(record)).encode())\n"
        "        try: made = codec.decode(*draw.damaged(rng, codec))\n"
        "        except CodecError as refused: made = refused\n"
        "        digest.update(repr(made).encode())\n"
        "print(digest.hexdigest())",
    ]
    native, *lines = run(words, compiled).splitlines()
    source, *same = run(words, ROOT / "impl").splitlines()
    assert ".so" in native
    assert source.endswith(".py")
    assert lines == same, f"seed {seed}"
    assert lines[0] == "[]"


def test_states_go_from_one_to_the_other(compiled: Path, tmp_path: Path) -> None:
    """A host may store a state with the interpreted core and continue with the compiled one, or the other way round."""
    begin = (
        "import pickle; from fencepost.coordinator import initial_state, step;"
        "from fencepost.protocol.events import Load, LoadStarted;"
        "from fencepost.protocol.profiles import KAFKA_4_4; from fencepost.protocol.settings import Settings;"
        "from fencepost_conformance.targets.java_order import JavaOrder;"
        "from fencepost_conformance.targets.ids import MemberIds;"
        "state = initial_state(Settings(), KAFKA_4_4);"
        "state, _ = step(state, LoadStarted(at_ms=0, leader_epoch=1), JavaOrder(MemberIds()));"
    )
    for here, there in ((compiled, ROOT / "impl"), (ROOT / "impl", compiled)):
        state = tmp_path / "state"
        run(["-c", begin + f"open({str(state)!r}, 'wb').write(pickle.dumps(state))"], here)
        read = f"import pickle; kept = pickle.load(open({str(state)!r}, 'rb'));"
        output = run(["-c", begin + read + "print(kept == state, kept.quirks is state.quirks, kept.status)"], there)
        assert output.split() == ["True", "True", "Status.LOADING"]


def test_the_modules_of_the_server_pass_their_tests_compiled(compiled: Path) -> None:
    assert ".so" in run(["-c", "import fencepost_server.dispatch as it; print(it.__file__)"], compiled)
    env = os.environ | {"PYTHONPATH": str(compiled)}
    left_out = [word for each in REPLACES for word in ("--deselect", each)]
    tests = ["server", "store", "aio", "-m", "not all", *left_out]
    words = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(words, cwd=ROOT / "tests" / "unit", env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
