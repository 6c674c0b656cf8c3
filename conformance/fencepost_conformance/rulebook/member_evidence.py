"""Observe which rules of members are at work where Kafka's own client does the same, and write that down.

Random schedules go through the core's member and reader and through Kafka's client (``clientside``), and random calls
through the reader's partitions and through Kafka's ``SubscriptionState`` (``jvm.positions``). In each that ends without
a difference the functions of the core that ran are noted; a rule that is cited in the lines of one of them counts. That
is less than the model's word for each step (``evidence``): a function may cite a rule that decided nothing there.

Run it with ``python -m fencepost_conformance.rulebook.member_evidence [SCHEDULES]``.
"""

from __future__ import annotations

import ast
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import fencepost
from fencepost.protocol.profiles import KAFKA_4_4
from fencepost.rulebook.book import cited_lines, read_book

from .. import repository
from ..clientside.judge import Half, Judge, MemberProtocol, protocols
from ..console import CannotRun, progress
from ..counting import counted
from ..jvm.builds import Build
from ..jvm.positions import KafkaPositions, differences
from ..jvm.process import ProcessFault
from .standing import MEMBER_EVIDENCE, evidence_folder

RELEASE = "4.4.0"
SCHEDULES = 1_000
LENGTH = 60
#: Where what a member does is written.
_FOLDERS = ("member", "reader")
#: What schedules of readers do not show, since they have no group, or one of the other protocol, and no kafka-python:
#: it does not count for them, though functions that run there cite it.
_ALONE: Final = (
    *("K-OFF-02", "K-OFF-12", "K-OFF-13", "K-OFF-14", "K-POLL-05", "K-CB-", "K-LEAVE-", "K-PY-"),
    *("N-CMT-02", "N-CMT-05", "N-REC-", "N-CLOSE-", "N-TR-"),
)
_UNSHOWN: Final[dict[tuple[Half, MemberProtocol], tuple[str, ...]]] = {
    (Half.READER, MemberProtocol.CLASSIC): (*_ALONE, "N-"),
    (Half.READER, MemberProtocol.CONSUMER): _ALONE,
    (Half.GROUP_READER, MemberProtocol.CLASSIC): ("K-PY-", "N-"),
    (Half.GROUP_READER, MemberProtocol.CONSUMER): (
        *("K-OFF-02", "K-OFF-12", "K-OFF-13", "K-OFF-14", "K-POLL-05", "K-CB-", "K-LEAVE-", "K-PY-", "N-CLOSE-"),
    ),
}
_HOME = Path(fencepost.__file__).parent


def rules_of_functions(
    folder: Path, rules_in: Callable[[str], Iterator[tuple[str, int]]]
) -> dict[tuple[str, int], set[str]]:
    """The rules that each function below ``folder`` cites, by its file and first line as its code object has them.

    ``rules_in``: the rules of a text, each with its line."""
    found: dict[tuple[str, int], set[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        cited = list(rules_in(text))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                inside = {rule for rule, line in cited if node.lineno <= line <= (node.end_lineno or node.lineno)}
                if inside:
                    found[str(path), first] = inside
    return found


@contextmanager
def noted(into: set[CodeType], home: Path) -> Iterator[None]:
    """Every function of files below ``home`` that runs meanwhile."""
    prefix = str(home)

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(prefix):
            into.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


def observe(schedules: int) -> dict[str, Any]:
    """How many schedules of members and readers, and walks of calls, each rule was at work in; of seeds 0, 1, …

    Raises ``CannotRun`` where no JVM or no client can be had."""
    book = read_book(repository.root() / "docs" / "rules")
    cited: dict[tuple[str, int], set[str]] = {}
    for folder in _FOLDERS:
        cited |= rules_of_functions(_HOME / folder, lambda text: iter(cited_lines(text, book)))
    rules: Counter[str] = Counter()
    steps = differing = 0

    def count(ran: set[CodeType], unshown: tuple[str, ...] = ()) -> None:
        found = {rule for code in ran for rule in cited.get((code.co_filename, code.co_firstlineno), ())}
        rules.update(rule for rule in found if not rule.startswith(unshown))

    judged_with = [(half, protocol) for half in Half for protocol in protocols(half)]
    with progress(f"Kafka's client {RELEASE} and the core's", (len(judged_with) + 1) * schedules) as meter:
        for half, protocol in judged_with:
            with Judge(Build(RELEASE), KAFKA_4_4, protocol, LENGTH, half) as judge:
                for seed in range(schedules):
                    ran: set[CodeType] = set()
                    try:
                        with noted(ran, _HOME):
                            judged = judge.judge(seed)
                    except ProcessFault as fault:
                        raise CannotRun(str(fault)) from None
                    steps += judged.steps
                    differing += judged.difference is not None
                    if judged.difference is None:
                        count(ran, _UNSHOWN.get((half, protocol), ()))
                    meter.advance(1)
        with closing(KafkaPositions(RELEASE)) as kafka:
            for seed in range(schedules):
                ran = set()
                with noted(ran, _HOME):
                    found = list(differences(kafka, [seed], KAFKA_4_4))
                differing += len(found)
                if not found:
                    count(ran, ("K-PY-",))
                meter.advance(1)
    return {
        "kafka": RELEASE,
        "profile": KAFKA_4_4.name,
        "schedules": schedules * len(judged_with),
        "walks": schedules,
        "steps": steps,
        "differing": differing,
        "rules": dict(sorted(rules.items())),
    }


def main() -> None:
    words = sys.argv[1:] or [str(SCHEDULES)]
    try:
        if len(words) > 1 or not words[0].isdigit():
            raise CannotRun(f"{' '.join(words)!r} is no number of schedules")
        found = observe(int(words[0]))
    except CannotRun as reason:
        print(f"evidence: {reason}", file=sys.stderr)
        raise SystemExit(2) from None
    path = evidence_folder(repository.root()) / MEMBER_EVIDENCE
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"{MEMBER_EVIDENCE}: {counted(len(found['rules']), 'rules')}")


if __name__ == "__main__":
    main()
