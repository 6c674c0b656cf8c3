"""``fencepost diagram``: draw a state machine."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fencepost_model.diagram import dot, mermaid, svg
from fencepost_model.machines import MACHINES

from ...common.errors import CannotRun
from ...common.nearest import unknown
from ...show.console import Result, finish


class Format(StrEnum):
    """The output format."""

    MERMAID = "mermaid"
    SVG = "svg"
    DOT = "dot"


_DRAW = {Format.MERMAID: mermaid, Format.SVG: svg, Format.DOT: dot}


def diagram(
    machine: Annotated[str, typer.Argument(help=f"one of: {', '.join(MACHINES)}")],
    form: Annotated[Format, typer.Option("--format", help="output format")] = Format.MERMAID,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="write to a file instead of standard output")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object that contains the picture")] = False,
) -> None:
    """Draw a state machine, with the rules that define each part of it."""
    spec = MACHINES.get(machine)
    if spec is None:
        raise CannotRun(unknown("machine", machine, MACHINES, f"there are {', '.join(MACHINES)}"))
    picture = _DRAW[form](spec)
    if output is not None:
        try:
            output.write_text(picture, encoding="utf-8")
        except OSError as error:
            raise CannotRun(f"cannot write {output}: {error.strerror}") from None
    if not as_json:
        print(picture if output is None else f"wrote {output}\n", end="")
        raise SystemExit(0)
    counts: dict[str, int | float] = {"states": len(spec.states), "transitions": sum(1 for _ in spec.expand())}
    details = {"machine": machine, "format": form.value, "file": str(output) if output else None}
    finish(Result("diagram", None, counts, details | ({} if output else {"picture": picture})), as_json=as_json)
