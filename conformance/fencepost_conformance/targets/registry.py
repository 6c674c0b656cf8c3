"""Targets by name."""

from __future__ import annotations

import re
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from fencepost.protocol.profiles import INTENDED, NEWEST_KAFKA, PROFILES
from fencepost_model.classic.scala import KAFKA_3_9

from ..common.errors import CannotRun
from ..common.nearest import unknown
from ..traces.profiles import JUDGED
from .jvm.builds import Build, in_folder, numbers

_KNOWN = (
    "core or model (each checks the other), kafka:RELEASE (such as kafka:4.4.0), kafka:DIR (a folder of jars), "
    "broker:RELEASE, HOST:PORT, kfake, serve"
)
#: brokers that are started by their name alone
PROGRAMS: Final = ("kfake", "serve")
_RELEASE = re.compile(r"\d+(\.\d+)+")


@dataclass(frozen=True, slots=True)
class TargetName:
    """``kind`` decides how it is tested: ``core`` by the model; ``kafka``, the coordinator of a release, or of the jars
    in a ``folder``, step by step; ``broker`` over the wire, at ``host`` and ``port``, or started for the run if it has
    a ``release``, or is a ``program``: franz-go's ``kfake``, or ``serve`` (``fencepost serve``)."""

    kind: Literal["core", "kafka", "broker"]
    release: str = ""
    host: str = ""
    port: int = 0
    folder: str = ""
    program: str = ""

    @property
    def build(self) -> Build:
        """The build of Kafka."""
        return Build(self.release, self.folder)


def parse_target(text: str) -> TargetName:
    """Parse a target's name. Raises ``CannotRun`` for an unknown one."""
    if text in ("core", "model"):
        return TargetName("core")
    if text in PROGRAMS:
        return TargetName("broker", program=text)
    head, colon, tail = text.rpartition(":")
    if colon and head in ("kafka", "broker") and _RELEASE.fullmatch(tail):
        return TargetName("kafka" if head == "kafka" else "broker", release=tail)
    if colon and head and tail.isdigit() and 0 < int(tail) < 65_536:
        return TargetName("broker", host=head.strip("[]"), port=int(tail))
    kind, colon, name = text.partition(":")
    if colon and kind in ("kafka", "broker"):
        return _of_folder(kind, name)
    names = ("core", "model", *PROGRAMS, *((f"kafka:{tail}", f"broker:{tail}") if colon else ()))
    raise CannotRun(unknown("target", text, names, f"known: {_KNOWN}"))


def _of_folder(kind: str, name: str) -> TargetName:
    if kind == "kafka" and ("/" in name or Path(name).expanduser().is_dir()):
        build = in_folder(name)
        return TargetName("kafka", release=build.version, folder=build.folder)
    folder = ", or kafka:DIR for a folder of jars" if kind == "kafka" else ""
    raise CannotRun(f"no release {name!r} of Kafka; write it as {kind}:4.4.0{folder}")


def absolute(text: str) -> str:
    """Return a target's name in a form that works in any folder. Raises ``CannotRun`` for an unknown one."""
    target = parse_target(text)
    return f"kafka:{target.folder}" if target.folder else text


def profile_for(target: TargetName, wanted: str | None) -> str:
    """Return the name of the profile to run with: the wanted one, else that of the target's release, else the newest
    Kafka's.

    Raises ``CannotRun`` for an unknown profile."""
    known = JUDGED if target.kind == "broker" else PROFILES
    if wanted is not None and wanted not in known:
        if wanted in JUDGED:
            raise CannotRun(f"profile {wanted} judges brokers only; the core does not have that coordinator")
        raise CannotRun(unknown("profile", wanted, known, f"known: {', '.join(sorted(known))}"))
    if wanted is None and target.kind == "broker" and target.release and numbers(target.release) < (4,):
        return KAFKA_3_9.name
    if wanted is None and target.program == "serve":
        return INTENDED.name
    return wanted or (profile_of_version(target.release) if target.release else NEWEST_KAFKA.name)


def profile_of_version(version: str) -> str:
    """Return the profile of that version's release, else of the newest one before it, else of the oldest."""
    ordered = sorted((numbers(name.removeprefix("kafka-")), name) for name in PROFILES if name.startswith("kafka-"))
    return max((row for row in ordered if row[0] <= numbers(version)), default=ordered[0])[1]


def build_found(target: TargetName, profile: str) -> dict[str, dict[str, str]]:
    """Return JSON data about a folder's build: its version, and why this profile. Empty for other targets."""
    if not target.folder:
        return {}
    own = profile_of_version(target.release)
    if profile != own:
        why = f"profile {profile} as requested (its own is {own})"
    elif numbers(own.removeprefix("kafka-"))[:2] == numbers(target.release)[:2]:
        why = f"profile {profile}"
    else:
        why = f"profile {profile}, the closest, since this version has none"
    message = f"{target.folder} holds Kafka {target.release}; {why}"
    return {"build": {"version": target.release, "folder": target.folder, "profile": profile, "message": message}}


def report_build(target: TargetName, profile: str) -> None:
    """Print that on standard error, before the work begins."""
    for found in build_found(target, profile).values():
        print(found["message"], file=sys.stderr)


def profiles_for(target: TargetName, wanted: str | None) -> tuple[str, ...]:
    """Return the profiles of a run: as ``profile_for``, but for the core without a wanted profile the two usual ones,
    ``intended`` and the newest Kafka's. Raises ``CannotRun`` as that does."""
    if target.kind == "core" and wanted is None:
        return INTENDED.name, NEWEST_KAFKA.name
    return (profile_for(target, wanted),)


def require_open(target: TargetName) -> None:
    """Raise ``CannotRun`` if nothing listens at the broker's address."""
    try:
        socket.create_connection((target.host, target.port), timeout=5).close()
    except OSError as reason:
        raise CannotRun(f"cannot connect to {target.host}:{target.port}: {reason.strerror or reason}") from None
