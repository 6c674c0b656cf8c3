"""Played cases for people and for tools: a table, failures with their exchange, JSON and JUnit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any
from xml.etree import ElementTree as ET

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text

from ...common.counting import counted
from ...judge.cases.answers import Exchange
from ...judge.cases.play import Ending, Played
from ...judge.rulebook.texts import rule_lines
from ..listing import Listing
from .junit import printable

#: failures with their exchange on a terminal; --json and --output have all
_SHOWN = 10
#: the last exchanges of a failure, and the longest line of one
_LAST, _LONGEST = 4, 400
#: the cases that a line names
_NAMED = 4
#: requests that a broker answers at once, and seconds that are slow for them
_PROMPT, _SLOW_S = ("heartbeat", "metadata", "offset_commit", "offset_fetch"), 1.0
_COLOURS = {Ending.FAILED: "red", Ending.NOT_REACHED: "yellow", Ending.KNOWN_FAULT: "cyan"}


def table(played: Sequence[Played], again: str) -> RenderableType:
    """Return the endings of each family, and whatever did not pass. ``again``: the command that runs a case alone,
    without its name."""
    listing = Listing(("family", *(each.value for each in Ending)), numbers=frozenset(each.value for each in Ending))
    families: dict[str, Counter[Ending]] = {}
    for each in played:
        families.setdefault(each.case.family, Counter())[each.ending] += 1
    for family, counts in families.items():
        listing.add(family, *(f"{counts[each]:,}" if counts[each] else "" for each in Ending))
    odd = [each for each in played if each.ending in _COLOURS]
    failed = [each for each in odd if each.ending is Ending.FAILED]
    parts: list[RenderableType] = [listing]
    parts += [_line(each) for each in odd if each.ending is Ending.KNOWN_FAULT]
    parts += [  # ``console.finish`` lists those that were not reached, by their reasons
        Text.from_markup(f"not supported: {escape(_together(names, why))}")
        for why, names in not_supported(played).items()
    ]
    parts += [
        Text.from_markup(f"passed, but {escape(each.case.name)}: {escape(each.why)}") for each in remarked(played)
    ]
    parts += [Text.from_markup(f"[yellow]{escape(note)}[/]") for note in notes(played)]
    parts += [Text.from_markup("\n".join(_failure(each, again))) for each in failed[:_SHOWN]]
    if len(failed) > _SHOWN:
        parts.append(f"and {len(failed) - _SHOWN} more failed cases (--json and --output have all)")
    return Group(*parts)


def remarked(played: Sequence[Played]) -> list[Played]:
    """Return the cases that passed with a remark."""
    return [each for each in played if each.ending is Ending.PASSED and each.why]


def not_supported(played: Sequence[Played]) -> dict[str, list[str]]:
    """Return the cases that the broker does not support, by what it lacks."""
    reasons: dict[str, list[str]] = {}
    for each in played:
        if each.ending is Ending.NOT_SUPPORTED:
            reasons.setdefault(each.why.partition("; ")[0], []).append(each.case.name)
    return reasons


def _together(names: Sequence[str], why: str) -> str:
    more = ", …" if len(names) > _NAMED else ""
    return f"{counted(len(names), 'cases')} ({', '.join(names[:_NAMED])}{more}): {why}"


def notes(played: Sequence[Played]) -> list[str]:
    """Return a line for each version whose answers cannot be read, and one about a broker that answers slowly: cases
    that wait for an order of events may fail for it."""
    avoided = sorted({asked for each in played for asked in each.avoided})
    lines = [
        f"{api} v{version}: a plain request gets no answer that can be read, though the broker announces this version; "
        "the cases use the next one below, if there is one"
        for api, version in avoided
    ]
    took = [each.took_s for one in played for each in one.exchanges if each.api in _PROMPT and each.answer is not None]
    if took and (half := median(took)) >= _SLOW_S:
        lines.append(
            f"the broker is slow: half of its answers to {', '.join(_PROMPT)} took more than {half:.1f} s; cases may "
            "fail for that reason"
        )
    return lines


def _line(played: Played) -> Text:
    colour = _COLOURS[played.ending]
    return Text.from_markup(f"[{colour}]{played.ending}[/] {played.case.name}: {escape(played.why)}")


def _failure(played: Played, again: str) -> list[str]:
    case = played.case
    lines = ["", f"[red]failed[/] [bold]{case.name}[/]: {escape(played.why)}", f"  {escape(case.text)}"]
    lines += [f"  {escape(rule)}" for rule in rule_lines(played.cited)]
    lines += [f"  {escape(line)}" for each in played.exchanges[-_LAST:] for line in exchange_lines(each)]
    return [*lines, f"  again: {escape(again)} --case {case.name}"]


def exchange_lines(exchange: Exchange) -> list[str]:
    """Return a request and its answer as two lines."""
    took = f"{exchange.took_s * 1000:,.0f} ms"
    sent = f"{exchange.at_s:7.3f} s {exchange.client} sends {exchange.api} v{exchange.version}"
    answer = "no answer" if exchange.answer is None else _values(exchange.answer)
    return [_short(f"{sent}: {_values(exchange.request)}"), _short(f"{'':>9} after {took}: {answer}")]


def _values(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _short(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def as_json(played: Played) -> dict[str, Any]:
    """Return a played case as JSON data, with its exchanges unless it passed."""
    case = played.case
    found: dict[str, Any] = {
        "case": case.name,
        "ending": played.ending,
        "text": case.text,
        "rules": list(played.cited),
        "seconds": round(played.seconds, 3),
    }
    if played.why:
        found["why"] = played.why
    if played.mismatch is not None:
        wrong = played.mismatch
        found["mismatch"] = {"field": wrong.path, "expected": wrong.expected, "received": wrong.received}
    if played.ending in _COLOURS:
        found["exchanges"] = [_exchange(each) for each in played.exchanges]
    return found


def _exchange(exchange: Exchange) -> dict[str, Any]:
    return {
        "client": exchange.client,
        "at_s": round(exchange.at_s, 4),
        "took_s": round(exchange.took_s, 4),
        "api": exchange.api,
        "version": exchange.version,
        "request": _jsonable(exchange.request),
        "answer": _jsonable(exchange.answer),
    }


def _jsonable(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {name: _jsonable(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(each) for each in value]
    return value


def junit(played: Sequence[Played], target: str, seconds: float) -> str:
    """Return the cases as JUnit XML, one test case each. A case that was not reached is an error; one that the broker
    does not support is skipped."""
    suite = ET.Element("testsuite", name=f"fencepost conform {target}", time=f"{seconds:.3f}")
    kinds = {Ending.FAILED: "failure", Ending.NOT_REACHED: "error", Ending.NOT_SUPPORTED: "skipped"}
    for each in played:
        added = ET.SubElement(
            suite,
            "testcase",
            classname=each.case.name.rpartition(".")[0],
            name=each.case.name,
            time=f"{each.seconds:.3f}",
        )
        if (kind := kinds.get(each.ending)) is not None:
            inner = ET.SubElement(added, kind, message=printable(each.why))
            lines = [line for exchange in each.exchanges for line in exchange_lines(exchange)]
            inner.text = printable("\n".join([each.case.text, *lines]))
        elif each.why:
            ET.SubElement(added, "system-out").text = printable(f"{each.ending}: {each.why}")
    endings = Counter(each.ending for each in played)
    suite.set("tests", str(len(played)))
    for ending, attribute in (("failed", "failures"), ("not reached", "errors"), ("not supported", "skipped")):
        suite.set(attribute, str(endings[Ending(ending)]))
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"
