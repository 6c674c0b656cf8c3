"""``fencepost replay``: one trace, step by step."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from fencepost.protocol.settings import PROFILES

from ..compare.lockstep import first_difference
from ..generate.generator import generate
from ..targets.kafka_jvm import KafkaJvm
from ..targets.registry import parse_target


def replay(
    trace: Annotated[str, typer.Argument(help="a seed")],
    target: Annotated[str, typer.Option(help="core or kafka:RELEASE")] = "core",
    profile: Annotated[str, typer.Option(help=f"one of {', '.join(sorted(PROFILES))}")] = "kafka-4.3",
    steps: Annotated[int, typer.Option(min=1, help="events of a seed's trace")] = 150,
    last: Annotated[int, typer.Option(help="only so many steps before the difference; 0: all")] = 0,
) -> None:
    """Show one trace step by step."""
    made = generate(int(trace), PROFILES[profile], steps)
    wanted = parse_target(target)
    other = None
    found = None
    if wanted.kind == "kafka":
        with KafkaJvm(wanted.release) as kafka:
            other = kafka.run(made.settings, made.profile, made.events)
        found = first_difference(made.observations, other)
    end = found.event + 1 if found else len(made.events)
    console = Console(width=240)
    console.print(made.settings)
    for index in range(max(0, end - last) if last else 0, end):
        console.print(f"[bold]{index}[/]", made.events[index])
        console.print("  core ", made.observations[index])
        if other is not None:
            console.print("  kafka", other[index])
    console.print(found)
