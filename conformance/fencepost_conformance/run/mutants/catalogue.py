"""All mutants, by name."""

from __future__ import annotations

from . import (
    assignor_faults,
    boundary_faults,
    cluster_faults,
    codec_faults,
    condition_faults,
    consumer_faults,
    consumer_member_faults,
    consumer_target_faults,
    family_faults,
    join_faults,
    member_faults,
    mixed_faults,
    offset_faults,
    reader_faults,
    sync_faults,
    width_faults,
)
from .mutant import Mutant

MUTANTS: dict[str, Mutant] = {
    mutant.name: mutant
    for mutant in (
        *join_faults.FAULTS,
        *sync_faults.FAULTS,
        *member_faults.FAULTS,
        *assignor_faults.FAULTS,
        *consumer_faults.FAULTS,
        *consumer_target_faults.FAULTS,
        *consumer_member_faults.FAULTS,
        *mixed_faults.FAULTS,
        *offset_faults.FAULTS,
        *codec_faults.FAULTS,
        *reader_faults.FAULTS,
        *cluster_faults.FAULTS,
        *condition_faults.FAULTS,
        *boundary_faults.FAULTS,
        *family_faults.FAULTS,
        *width_faults.FAULTS,
    )
}
