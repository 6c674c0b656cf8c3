"""The comparison of rows and digests detects differences."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.coverage import catalogue
from fencepost_conformance.judge.rows.job import Row
from fencepost_conformance.run.mutants.catalogue import MUTANTS
from fencepost_conformance.run.mutants.mutant import planted
from fencepost_conformance.run.pipeline.spark import as_arrow, from_spark
from tools.digests import digest_of

ROW = Row(
    *(7, "held", "", -1, "", "", "", 1, 2, 3, 4, 5),
    coverage=catalogue.bitmap(catalogue.FEATURES[:2]),
    digest="d",
    group="",
)


def altered(name: str) -> Any:
    value = getattr(ROW, name)
    if isinstance(value, bytes):
        return catalogue.bitmap(catalogue.FEATURES[1:3])
    return value + 1 if isinstance(value, int) else f"{value}!"


@pytest.mark.parametrize("name", [field.name for field in fields(Row)])
def test_a_row_that_spark_would_change_in_one_column_is_another(name: str) -> None:
    """Compare rows as ``tests/spark/test_pipeline.py`` compares those of Spark with those of this process."""
    kept, changed = as_arrow([ROW, replace(ROW, **{name: altered(name)})]).to_pylist()
    assert from_spark(kept) == ROW
    assert from_spark(changed) != ROW


@pytest.mark.parametrize(
    ("mutant", "protocol"),
    [("generation-stays", GroupProtocol.CLASSIC), ("whole-target-answered", GroupProtocol.CONSUMER)],
)
def test_a_core_that_behaves_differently_has_other_digests(mutant: str, protocol: GroupProtocol) -> None:
    """Compare digests as for the compiled and the interpreted core, and for processes that hash texts differently."""
    sound = [digest_of(seed, "intended", protocol) for seed in range(12)]
    assert sound == [digest_of(seed, "intended", protocol) for seed in range(12)]
    with planted(MUTANTS[mutant]):
        assert sound != [digest_of(seed, "intended", protocol) for seed in range(12)]
