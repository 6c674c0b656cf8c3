"""Kafka's own client as a check of members and readers: a fault is found where Kafka's client behaves differently.

It needs a JVM, so it runs only on request. Its findings are listed after those of the other checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...judge.client.kinds import Half, MemberProtocol
from ...judge.client.run import Job, forget, judge_of
from ...targets.jvm.builds import Build
from ...targets.jvm.process import ProcessFault
from ...targets.registry import profile_of_version
from .mutant import Side

NAME: Final = "Kafka's client"
SCHEDULES, LENGTH = 150, 60
#: Halves of clients that are compared for a fault of that side.
JUDGED: Final[dict[Side, tuple[tuple[Half, MemberProtocol], ...]]] = {
    Side.MEMBER: ((Half.MEMBER, MemberProtocol.CLASSIC),),
    Side.CONSUMER_MEMBER: ((Half.MEMBER, MemberProtocol.CONSUMER),),
    Side.READER: (
        (Half.READER, MemberProtocol.CLASSIC),
        (Half.READER, MemberProtocol.CONSUMER),
        (Half.GROUP_READER, MemberProtocol.CLASSIC),
        (Half.GROUP_READER, MemberProtocol.CONSUMER),
    ),
}


def differences(release: str, side: Side) -> Iterator[tuple[str, str, int, int, str]]:
    """Yield the parts of a ``Kill`` for each schedule that differs. Raises ``CannotRun`` without a JVM."""
    for half, protocol in JUDGED.get(side, ()):
        job = Job(Build(release), profile_of_version(release), protocol, LENGTH, half)
        judge_of(job)
        for seed in range(SCHEDULES):
            try:
                judged = judge_of(job).judge(seed)
            except ProcessFault as fault:
                forget(job)
                yield NAME, "an unexpected answer", 1, seed, str(fault)
                continue
            except Exception as raised:  # the faulty program crashed
                yield NAME, "an internal error", 1, seed, f"{type(raised).__name__}: {raised}"
                continue
            if judged.difference is not None:
                found = judged.difference
                yield NAME, f"{protocol} {half}, {found.group}", judged.steps + 1, seed, str(found.fields)
