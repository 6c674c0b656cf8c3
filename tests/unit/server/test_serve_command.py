"""What ``fencepost serve`` refuses before it listens: one line, which says what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fencepost_conformance.cli import main


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--listen", "nowhere"), "--listen"),
        (("--topic", "orders"), "is not NAME:PARTITIONS, such as orders:4"),
        (("--topic", "a b:1"), "characters other than"),
        (("--profile", "kafka-9"), "no profile"),
        (("--setting", "group.max.size"), "is not NAME=VALUE"),
        (("--setting", "group.min.session.timeout.ms=9999999"), "do not go together"),
        (("--superuser", "User:a"), "needs --acl"),
        (("--tls-key", "key.pem"), "need --tls-cert"),
        (("--log", "xml"), "known: text, json"),
        (("--users", "missing"), "missing: No such file"),
        (("--acl", "{bad}"), "line 1"),
        (("--users", "{bad}"), "line 1"),
        (("--tls-cert", "{bad}"), "--tls-cert"),
        (("--data", "{bad}"), "File exists"),
    ],
)
def test_bad_options(
    words: tuple[str, ...],
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    bad = tmp_path / "bad"
    bad.write_text("nonsense\n")
    with pytest.raises(SystemExit) as ended:
        main(["serve", "--listen", "127.0.0.1:0", *[word.format(bad=bad) for word in words]])
    errors = capsys.readouterr().err
    assert ended.value.code == 2
    assert told in errors
    assert len(errors.splitlines()) == 1


def test_serving_needs_the_packages_of_its_extra_alone() -> None:
    program = """
import sys
for name in ("transitions", "numpy", "pyspark", "pyarrow", "hypothesis"):
    sys.modules[name] = None
from fencepost_conformance.cli import main
main(["serve", "--listen", "nowhere"])
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert ended.stderr == "fencepost serve: --listen 'nowhere' is not HOST:PORT\n"
