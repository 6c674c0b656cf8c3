"""The rules of a classic member that a profile can change; see ``differences``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..differences import checked, rule


@dataclass(frozen=True, slots=True)
class MemberVariant:
    """The intended rules, as the defaults."""

    retries_sync_while_loading: bool = rule(
        True, "K-ERR-02", "D-01", says="a SyncGroup that finds the coordinator loading is sent again"
    )


INTENDED: Final = MemberVariant()

#: what each switch of a profile changes
DIFFERENCES: Final = checked(MemberVariant, {"fault_sync_load_is_thrown": {"retries_sync_while_loading": False}})
