"""Which steps of a trace are heartbeats without news, so that a page can fold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .steps import Kind, StepWords

_HEARTBEATS: Final = ("Heartbeat", "ConsumerGroupHeartbeat")


def heartbeats(steps: Sequence[StepWords]) -> frozenset[int]:
    """Return the places of the steps that are heartbeats without news: no error, no record, no change of a group.
    On the wire an answer is a separate step, and a request has news if its answer has."""
    quiet: set[int] = set()
    waiting: dict[tuple[str, str], int] = {}  # requests on the wire, by client and number
    for at, step in enumerate(steps):
        if step.kind is Kind.ANSWER:
            (answer,) = step.answers
            asked = waiting.pop((step.whom, f"#{answer.request_id}"), None)
            if asked is None:
                continue
            if _has_news(step):
                quiet.discard(asked)
            else:
                quiet.add(at)
        elif step.kind is Kind.REQUEST and step.brief.split(" ")[0] in _HEARTBEATS and not _has_news(step):
            quiet.add(at)
            if not step.answers:
                waiting[step.who, step.what.split(" ")[0]] = at
    return frozenset(quiet)


def _has_news(step: StepWords) -> bool:
    answered = any(answer.error or " own " in f" {answer.brief} " for answer in step.answers)
    return answered or bool(step.groups) or step.append is not None or step.error is not None
