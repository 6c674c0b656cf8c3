"""A run as JUnit XML, for tools that collect test results.

One case counts the traces that passed. Each group of failures is a case with ``failure``. Each undecided or broken
trace is a case with ``error``, and so is a run that stopped early; a CI system shows both as red.
"""

from __future__ import annotations

from xml.etree import ElementTree as ET

from ...common.counting import counted
from ...judge.rows.summary import Summary


def junit(summary: Summary, seconds: float) -> str:
    """Return the XML text. The case of a failure group shows its first failure and counts the others."""
    job, tally, unsettled = summary.job, summary.tally, summary.unsettled()
    name = f"fencepost conform {job.target} {job.profile} {job.protocol}"
    suite = ET.Element("testsuite", name=name)

    def case(title: str, kind: str = "", cause: str = "", message: str = "") -> None:
        added = ET.SubElement(suite, "testcase", classname=name, name=title)
        if kind:
            ET.SubElement(added, kind, type=cause, message=printable(message))

    known = f" ({summary.known_traces:,} with accepted differences)" if summary.known_traces else ""
    case(f"{tally.passed} of {counted(summary.traces, 'traces')} passed{known}")
    for group in summary.rejected():
        # over the wire the first value is a whole sentence, and steps are lines
        values, place = (group.left, "line") if summary.recorded else (f"{group.left} / {group.right}", "event")
        text = f"{values} ({counted(group.traces, 'traces')}, first seed {group.seed}, {place} {group.event})"
        case(printable(group.key), "failure", group.key.partition(":")[0].partition(" ")[0], text)
    for each in unsettled:
        case(each.what, "error", each.verdict.value, each.why)
    rest = tally.undecided + tally.broken - len(unsettled)
    if rest:
        case(f"{counted(rest, 'more traces')}", "error", "undecided", "undecided or broken, like those above")
    if summary.stopped:
        case("the whole run", "error", "incomplete", f"{summary.stopped}; the rest was not run")
    elif not summary.traces:
        case("the whole run", "error", "incomplete", "nothing was decided")
    kinds = [child.tag for each in suite for child in each]
    for attribute, number in (
        ("tests", len(suite)),
        ("failures", kinds.count("failure")),
        ("errors", kinds.count("error")),
        ("skipped", 0),
    ):
        suite.set(attribute, str(number))
    suite.set("time", f"{seconds:.3f}")
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def printable(text: str) -> str:
    """Replace characters that XML cannot contain."""
    return "".join(char if char.isprintable() else "?" for char in text)
