"""``fencepost certify``: check the core, and write what was checked for exactly these files; or compare a certificate
with the installed files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.markup import escape

from fencepost.certification.checking import layout_of, report
from fencepost.certification.files import PartFolders
from fencepost.certification.signature import CannotSign, sign
from fencepost.certification.statement import as_text

from ...common import repository
from ...common.errors import CannotRun
from ...common.nearest import unknown
from ...judge.verdict import Tally, Unsettled, Verdict
from ...show.console import Result, finish, progress
from ...show.listing import Listing
from ...targets.jvm import jars
from .. import seeds
from ..certify.making import Made, certificate_of, make, versions_here
from ..certify.plan import SIZES, Planned, planned


def certify(  # noqa: PLR0917 — options of a command line
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="the certificate; default: certificate.json in the package fencepost"),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="compare the certificate with the installed files; needs no extra")
    ] = False,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="with --check: a public SSH key that must have signed it")
    ] = None,
    installed: Annotated[
        Path | None, typer.Option(metavar="DIR", help="with --check: look in this site-packages or checkout")
    ] = None,
    size: Annotated[str, typer.Option(help="how much is checked: small (minutes) or full (hours)")] = "small",
    traces: Annotated[
        int, typer.Option(min=0, help="traces of each protocol in each comparison; 0: those of --size")
    ] = 0,
    mutants: Annotated[int, typer.Option(min=0, help="number of mutants; 0: those of --size")] = 0,
    seed: Annotated[
        int | None, typer.Option(min=0, help="the first seed of the traces; default: a new one for each run")
    ] = None,
    sign_with: Annotated[
        Path | None, typer.Option("--sign", metavar="KEY", help="sign it with this private SSH key, by ssh-keygen")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Check the core, and write a certificate: what was checked, for exactly the files of this checkout. With --check:
    compare a certificate with the installed files."""
    if check:
        # as where only the library is installed: fencepost.certification.checking.main
        if sign_with or traces or mutants or seed is not None:
            raise CannotRun("--check compares files; leave out --sign, --traces, --mutants and --seed")
        report(layout_of(installed, as_json=as_json), file, key, as_json=as_json)
    if key is not None or installed is not None:
        raise CannotRun("--key and --installed need --check")
    if size not in SIZES:
        raise CannotRun(unknown("size", size, SIZES, f"there are {', '.join(SIZES)}"))
    chosen = replace(SIZES[size], traces=traces or SIZES[size].traces, mutants=mutants or SIZES[size].mutants)
    root = repository.root()
    layout = PartFolders.of_checkout(root)
    if layout != PartFolders.installed():
        raise CannotRun(f"the fencepost that runs is not the one of {root}: pip install -e . there, or use its .venv")
    if sign_with is not None and not sign_with.is_file():
        raise CannotRun(f"there is no private key {sign_with}")
    target = file or layout.certificate
    if not os.access(target.parent, os.W_OK):
        raise CannotRun(f"cannot write into {target.parent}")
    digests, versions = layout.digests(), versions_here()
    plan = list(planned(chosen, seeds.seed_of_run() if seed is None else seed))
    done: list[Made] = []
    with progress("certify", total=len(plan)) as meter:

        def note(each: Planned) -> None:
            meter.update(description=each.name)

        for made in make(plan, root, has_jdk=jars.has_jdk(), note=note):
            done.append(made)
            meter.advance()
    if layout.digests() != digests:
        raise CannotRun("files changed while they were checked; there is no certificate; run it again")
    result = result_of(done, plan)
    verdicts = {each.verdict for each in done if each.missing is None}
    if verdicts == {"passed"} and len(done) == len(plan):
        name = size if chosen == SIZES[size] else "custom"
        made_of = certificate_of(done, digests, root, size=name, versions=versions)
        target.write_text(as_text(made_of), encoding="utf-8", newline="\n")
        target.with_name(f"{target.name}.sig").unlink(missing_ok=True)
        result.details["certificate"] = str(target)
        if sign_with is not None:
            try:
                result.details["signature"] = str(sign(target, sign_with))
            except CannotSign as reason:
                raise CannotRun(f"{target} was written without a signature: {reason}") from None
    elif "failed" in verdicts and target.is_file():  # a device must stay
        target.unlink()  # an older certificate of these files would be false
    finish(result, as_json=as_json, table=None if as_json else table_of(done, result.details.get("certificate")))


def result_of(done: Sequence[Made], plan: Sequence[Planned]) -> Result:
    """Return the result. A check that could not be made is broken: the run is incomplete, and the certificate names the
    missing link."""
    verdicts = {"passed": Verdict.PASSED, "failed": Verdict.FAILED, "incomplete": Verdict.UNDECIDED}
    judged = [(each, Verdict.BROKEN if each.missing else verdicts[each.verdict]) for each in done]
    return Result(
        "certify",
        Tally.of(verdict for _, verdict in judged),
        {"checks": len(plan)},
        {
            "checks": [
                {
                    "check": each.planned.name,
                    "command": each.planned.command,
                    "verdict": verdict,
                    "counts": each.finding.result.get("counts", {}),
                    "seconds": round(each.finding.seconds, 1),
                }
                for each, verdict in judged
            ]
        },
        things="checks",
        unsettled=[
            Unsettled(verdict, each.planned.name, f"missing link: {each.missing}" if each.missing else each.why)
            for each, verdict in judged
            if verdict in (Verdict.UNDECIDED, Verdict.BROKEN)
        ],
        stopped=f"interrupted: {len(done)} of {len(plan)} checks were begun" if len(done) < len(plan) else None,
    )


def table_of(done: Sequence[Made], certificate: str | None) -> RenderableType:
    """Return a table of the checks, and why some failed; ``finish`` lists those without a verdict."""
    listing = Listing(("check", "verdict", "seconds", "command"), numbers=frozenset(("seconds",)))
    colours = {"passed": "green", "failed": "red"}
    for each in done:
        word = "missing" if each.missing else each.verdict
        listing.add(
            each.planned.name,
            f"[{colours.get(word, 'yellow')}]{word}[/]",
            f"{each.finding.seconds:.0f}",
            each.planned.command,
        )
    listing.caption = f"certificate: {certificate}" if certificate else "no certificate was written"
    failed = (each for each in done if each.missing is None and each.verdict == "failed")
    return Group(listing, *(f"[red]{each.planned.name}[/]: {escape(each.why)}" for each in failed))
