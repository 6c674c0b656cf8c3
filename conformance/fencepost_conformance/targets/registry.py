"""Targets by name."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Literal

from fencepost.protocol.settings import INTENDED, NEWEST_KAFKA, PROFILES

from ..console import CannotRun
from ..nearest import unknown

_KNOWN = "core or model (each checks the other), kafka:RELEASE (as kafka:4.3.1), broker:RELEASE, HOST:PORT"


@dataclass(frozen=True, slots=True)
class TargetName:
    """``kind`` tells how it is tested: ``core`` by the model; ``kafka``, the coordinator of a release, step by step;
    ``broker`` over the wire, at ``host`` and ``port``, or started for the occasion if it has a ``release``."""

    kind: Literal["core", "kafka", "broker"]
    release: str = ""
    host: str = ""
    port: int = 0


def parse_target(text: str) -> TargetName:
    """What a target's name means. Raises ``CannotRun`` for a name that means nothing."""
    if text in ("core", "model"):
        return TargetName("core")
    head, colon, tail = text.rpartition(":")
    if colon and head in ("kafka", "broker"):
        if not tail.replace(".", "").isdigit():
            raise CannotRun(f"no release {tail!r} of Kafka; write it as {head}:4.3.1")
        return TargetName("kafka" if head == "kafka" else "broker", release=tail)
    if colon and head and tail.isdigit() and 0 < int(tail) < 65_536:
        return TargetName("broker", host=head.strip("[]"), port=int(tail))
    names = ("core", "model", *((f"kafka:{tail}", f"broker:{tail}") if colon else ()))
    raise CannotRun(unknown("target", text, names, f"known: {_KNOWN}"))


def profile_for(target: TargetName, wanted: str | None) -> str:
    """The name of the profile to run with: the wanted one, else that of the target's release, else the newest Kafka's.

    Raises ``CannotRun`` for a profile that does not exist."""
    if wanted is not None and wanted not in PROFILES:
        raise CannotRun(unknown("profile", wanted, PROFILES, f"known: {', '.join(sorted(PROFILES))}"))
    of_release = f"kafka-{'.'.join(target.release.split('.')[:2])}"
    return wanted or (of_release if of_release in PROFILES else NEWEST_KAFKA.name)


def profiles_for(target: TargetName, wanted: str | None) -> tuple[str, ...]:
    """The profiles that a run goes through: as ``profile_for``, but the core under both that people use it with,
    ``intended`` and the newest Kafka's, unless one is wanted. Raises ``CannotRun`` as that does."""
    if target.kind == "core" and wanted is None:
        return INTENDED.name, NEWEST_KAFKA.name
    return (profile_for(target, wanted),)


def require_open(target: TargetName) -> None:
    """Raises ``CannotRun`` if nothing listens at the broker's address."""
    try:
        socket.create_connection((target.host, target.port), timeout=5).close()
    except OSError as reason:
        raise CannotRun(f"cannot connect to {target.host}:{target.port}: {reason.strerror or reason}") from None
