"""A run as JUnit XML, for whoever collects test results: one case for each failure and for each trace that could not be
run, one for all that held."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from ..counting import counted
from ..pipeline.summary import Summary


def junit(summary: Summary, seconds: float) -> str:
    """The XML text. Kept failures are cases of their own; the rest is one case that counts them."""
    job = summary.job
    name = f"fencepost conform {job.target} {job.profile} {job.protocol}"
    failures = [row for row in summary.failures if row.group not in summary.accepted]
    suite = ET.Element(
        "testsuite",
        name=name,
        tests=str(len(failures) + len(summary.unrun) + 1 + bool(summary.stopped)),
        failures=str(len(failures)),
        errors=str(len(summary.unrun) + bool(summary.stopped)),
        skipped="0",
        time=f"{seconds:.3f}",
    )
    known = sum(group.traces for key, group in summary.groups.items() if key in summary.accepted)
    held = summary.traces - summary.failed - summary.broken + known
    ET.SubElement(suite, "testcase", classname=name, name=f"{held} of {counted(summary.traces, 'traces')} held")
    for row in failures:
        case = ET.SubElement(suite, "testcase", classname=name, name=f"seed {row.seed}")
        text = f"{row.group}; event {row.event}, {row.field}: {row.left} / {row.right}"
        ET.SubElement(case, "failure", type=row.verdict, message=_printable(text))
    for row in summary.unrun:
        case = ET.SubElement(suite, "testcase", classname=name, name=f"seed {row.seed}")
        ET.SubElement(case, "error", type=row.verdict, message=_printable(row.left))
    if summary.stopped:
        case = ET.SubElement(suite, "testcase", classname=name, name="the whole run")
        ET.SubElement(case, "error", type="incomplete", message=_printable(f"{summary.stopped}; the rest was not done"))
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _printable(text: str) -> str:
    """Without what XML cannot hold."""
    return "".join(char if char.isprintable() else "?" for char in text)
