"""A member of the consumer protocol must commit with version 9 or later; an older one gets an error (O-COMMIT-31)."""

from __future__ import annotations

import pytest

from fencepost.protocol.errors import ErrorCode as E
from fencepost_conformance.traces.lines import ReceivedLine, SentLine

from .written import Wire, parts


def commits(version: int, epoch: int, error: E) -> Wire:
    """Let member a, at epoch 2, send this commit and get this answer."""
    wire = Wire()
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3))
    row = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
    asked = {
        "group_id": "g", "generation_id_or_member_epoch": epoch, "member_id": "a",
        "topics": [{"name": "t", "partitions": [row]}],
    }  # fmt: skip
    answer = {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "error_code": int(error)}]}]}
    about = {"connection": 7, "correlation_id": 1, "api_key": 8, "api_version": version}
    wire.lines.append(SentLine(at_ms=1_100, body=asked, **about))  # type: ignore[arg-type]
    wire.lines.append(ReceivedLine(at_ms=1_105, body=answer, **about))  # type: ignore[arg-type]
    return wire


@pytest.mark.parametrize("epoch", [2, 1, -1])
def test_an_old_commit_version_is_rejected_at_any_epoch(epoch: int) -> None:
    assert commits(8, epoch, E.UNSUPPORTED_VERSION).accepted()
    for error in (E.NONE, E.STALE_MEMBER_EPOCH):
        assert "O-COMMIT-31" in commits(8, epoch, error).refusal().rules


def test_a_new_one_is_not() -> None:
    assert commits(9, 2, E.NONE).accepted()
    assert "O-COMMIT-31" in commits(9, 2, E.UNSUPPORTED_VERSION).refusal().rules
