"""The command line. Commands are imported when they are used, so that ``--help`` is quick and no command needs the
libraries of another."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from typing import NoReturn

from .stdout import survive_closed_pipe

COMMANDS = {
    "check": "Explore a model exhaustively; with TLC, also compare the two state graphs",
    "conform": "Run random traces against a target and compare every step",
    "record": "Record a trace between real clients and a real broker",
    "validate": "Decide whether recorded traces could have been produced",
    "replay": "Show one trace step by step",
    "mutants": "Run the suite against each known fault",
    "rules": "Show where each rule of the rule book stands",
    "diagram": "Draw a state machine",
    "bench": "Measure the cost table again",
}

INTERRUPTED = "interrupted; nothing is said of what was not done"


def usage() -> str:
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {text}" for name, text in COMMANDS.items())
    return f"usage: fencepost COMMAND [--json] ...\n\n{rows}\n\nfencepost COMMAND --help tells a command's own options."


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """The command; what ends it from outside is told in a line: Ctrl-C, a full disk, a file that it may not read."""

    @functools.wraps(command)
    def guarded(*values: object, **options: object) -> None:
        from .console import CannotRun  # noqa: PLC0415

        try:
            command(*values, **options)
        except KeyboardInterrupt:
            raise CannotRun(INTERRUPTED) from None
        except OSError as reason:
            at = "" if reason.filename is None else f"{reason.filename}: "
            raise CannotRun(f"{at}{reason.strerror or reason}") from None

    return guarded


def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``fencepost``. Exit status 0 held, 1 found something, 2 could not run."""
    if arguments is None:
        survive_closed_pipe()
    words = sys.argv[1:] if arguments is None else arguments
    if not words or words[0] in ("-h", "--help"):
        print(usage())
        raise SystemExit(0 if words else 2)
    name, rest = words[0], words[1:]
    if name == "--version":
        from importlib.metadata import version  # noqa: PLC0415

        print(version("fencepost"))
        raise SystemExit(0)
    if name not in COMMANDS:
        print(f"fencepost: no command {name!r}\n\n{usage()}", file=sys.stderr)
        raise SystemExit(2)
    try:
        import typer  # noqa: PLC0415

        from .console import CannotRun  # noqa: PLC0415

        module = importlib.import_module(f"{__package__}.commands.{name}")
    except ModuleNotFoundError as missing:
        _cannot(
            name,
            f"the Python package {missing.name!r} is not installed; "
            "install the suite, in a checkout of the project: pip install -e '.[suite]' (with Spark: '.[spark]')",
        )
    except KeyboardInterrupt:
        _cannot(name, INTERRUPTED)
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(name)(_guarded(getattr(module, name)))
    try:
        app(args=rest, prog_name=f"fencepost {name}", standalone_mode=True)
    except CannotRun as reason:
        _cannot(name, str(reason))


def _cannot(name: str, reason: str) -> NoReturn:
    print(f"fencepost {name}: {reason}", file=sys.stderr)
    raise SystemExit(2) from None


if __name__ == "__main__":
    main()
