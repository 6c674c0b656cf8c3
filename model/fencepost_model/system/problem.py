"""The problem that a configuration poses to a closed system."""

from __future__ import annotations

from dataclasses import dataclass

from .config import Config
from .consumer.config import ConsumerConfig
from .log.config import LogConfig
from .mixed.config import MixedConfig
from .offsets.config import OffsetsConfig


@dataclass(frozen=True, slots=True)
class Problem:
    """The contents of a TLC configuration: a system, the names of properties, fairness, mutants."""

    config: Config | ConsumerConfig | MixedConfig | LogConfig | OffsetsConfig
    properties: tuple[str, ...]
    fair: bool
    mutants: tuple[str, ...]
