"""Commits in the closed groups: the specification accepts each commit that the model's own check accepts (E1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from graphs import SPEC, compared, dumped

from fencepost.protocol.errors import ErrorCode
from fencepost_model.offsets.checks import Checked, Committer, may_commit
from fencepost_model.system import commits
from fencepost_model.system.checking import check_python, check_tlc
from fencepost_model.system.manifest import read_manifest

ENTRIES = {entry.name: entry for entry in read_manifest(SPEC)}
QUIET = ("EagerCommits", "ConsumerCommits", "MixedCommits")
FAULTY = ("ConsumerTimersCommits", "MixedDowngradeAndUpgradeCommits", "StaticCommits")


@pytest.mark.tlc
@pytest.mark.parametrize("name", QUIET)
def test_the_two_graphs_are_the_same_with_commits(name: str, tlc: None) -> None:
    row = check_tlc(ENTRIES[name], workers=2)
    assert (row.compared, row.wrong) == (True, [])


@pytest.mark.tlc
@pytest.mark.slow
@pytest.mark.all
@pytest.mark.parametrize("name", FAULTY[:2])  # test_e1 has the last one
def test_more_graphs_are_the_same_with_commits(name: str, tlc: None) -> None:
    row = check_tlc(ENTRIES[name], workers=2)
    assert (row.compared, row.wrong) == (True, [])


@pytest.mark.parametrize("name", FAULTY)
def test_only_the_holder_of_a_partition_may_commit(name: str) -> None:
    row = check_python(ENTRIES[name])
    assert row.as_expected, row


def _lax(variant: Any, group: Any, by: Committer) -> Checked:
    del variant, group, by
    return Checked(None, ())


def _strict(variant: Any, group: Any, by: Committer) -> Checked:
    found = may_commit(variant, group, by)
    return found if by.epoch < 2 else Checked(ErrorCode.ILLEGAL_GENERATION, ())


@pytest.mark.tlc
@pytest.mark.parametrize(("name", "check"), [("ConsumerCommits", _strict), ("EagerCommits", _strict)])
def test_a_check_that_is_too_strict_is_seen_by_the_graphs(
    name: str, check: Any, tmp_path: Path, tlc: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = dumped(tmp_path, ENTRIES[name])
    assert compared(dump, ENTRIES[name]).equal
    monkeypatch.setattr(commits, "may_commit", check)
    assert not compared(dump, ENTRIES[name]).equal


@pytest.mark.parametrize("name", ["StaticCommits", "ConsumerTimersCommits"])
@pytest.mark.parametrize(("check", "promise"), [(_lax, "OnlyHoldersCommit"), (_strict, "EveryHolderMayCommit")])
def test_a_wrong_check_breaks_a_promise(name: str, check: Any, promise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commits, "may_commit", check)
    assert promise in check_python(ENTRIES[name]).violated
