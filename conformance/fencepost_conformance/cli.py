"""The command line. Each command is imported when it is used, so that ``--help`` is quick and no command needs the
libraries of another."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

from fencepost.extras import absent

from .common.interruption import listen_to_sigterm
from .common.nearest import unknown
from .run.extras import lacks
from .run.stdout import survive_closed_pipe

if TYPE_CHECKING:
    import typer

COMMANDS = {
    "check": "Explore a model exhaustively; with TLC, also compare the two state graphs",
    "promises": "Show each promise, where it is checked, and what breaks it",
    "graph": "Walk the state graph of a configuration in a browser",
    "conform": "Play named cases on a broker, or compare random traces step by step",
    "diff": "Run two targets side by side and group their differences by cause",
    "serve": "Serve the coordinator on a port, for unmodified Kafka clients",
    "store": "Check that the stores of a server are intact",
    "record": "Record a trace between real clients and a real broker",
    "import": "Make a trace from a packet capture of clients and brokers",
    "validate": "Check whether the model could have produced recorded traces",
    "replay": "Show one trace step by step",
    "history": "Show what happened to a group, from the records of the offsets topic",
    "watch": "Show the groups of a running cluster, live: members, lag, rebalances and their causes",
    "decode": "Print the records of the offsets topic as lines of JSON",
    "findings": "Show which known Kafka bug is in which release",
    "simulate": "Move coordinators between brokers under members, commits and transactions",
    "mutants": "Run the suite against each known fault",
    "rules": "Show the rules of the rule book and the status of each",
    "lab": "Play rebalances on a page in a browser, on the real coordinator and members",
    "diagram": "Draw a state machine",
    "bench": "Measure the cost table again",
    "doctor": "Show what is installed, and which jobs can run",
    "certify": "Check the core and write a certificate of its files, or check the installed files against one",
}

#: modules and functions of commands whose names are words of Python
_FUNCTIONS = {"import": "import_capture"}
#: the variable that a shell sets when it asks for completions
_COMPLETE = "_FENCEPOST_COMPLETE"
_FOR_SHELLS = ("--install-completion", "--show-completion")

INTERRUPTED = "interrupted before there was a result"


def usage() -> str:
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {text}" for name, text in COMMANDS.items())
    return (
        f"usage: fencepost COMMAND [--json] ...\n\n{rows}\n\n"
        "fencepost COMMAND --help shows the options of a command.\n"
        "fencepost --install-completion installs shell completion (--show-completion prints the script)."
    )


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with one-line messages for whatever ends it from outside: Ctrl-C, SIGTERM, a full disk, a file
    without read permission."""

    @functools.wraps(command)
    def guarded(*values: object, **options: object) -> None:
        from .common.errors import CannotRun  # noqa: PLC0415

        try:
            command(*values, **options)
        except KeyboardInterrupt:
            raise CannotRun(INTERRUPTED) from None
        except subprocess.TimeoutExpired as late:
            program = Path(late.cmd if isinstance(late.cmd, str) else late.cmd[0]).name
            raise CannotRun(f"{program} did not end within {late.timeout:g} s") from None
        except OSError as reason:
            at = "" if reason.filename is None else f"{reason.filename}: "
            raise CannotRun(f"{at}{reason.strerror or reason}") from None

    return guarded


def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``fencepost``. Exit status: that of the outcome (``verdict.outcome_of``), or 2 if the command
    could not run or the suite itself failed."""
    if arguments is None:
        survive_closed_pipe()
        listen_to_sigterm()
    words = sys.argv[1:] if arguments is None else arguments
    if len(words) > 1 and words[0] in _FOR_SHELLS:
        # so that typer uses the given name of the shell
        os.environ["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"] = "1"
    if _COMPLETE in os.environ or (words and words[0].partition("=")[0] in _FOR_SHELLS):
        _complete(words)
    if not words or words[0] in ("-h", "--help"):
        print(usage())
        raise SystemExit(0 if words else 2)
    name, rest = words[0], words[1:]
    if name == "--version":
        from importlib.metadata import version  # noqa: PLC0415

        print(version("fencepost"))
        raise SystemExit(0)
    as_json = "--json" in words
    if name not in COMMANDS:
        _cannot("", unknown("command", name, COMMANDS, "fencepost --help lists them"), as_json=as_json)
    if name == "doctor" and absent("typer", "rich"):
        _doctor(rest, as_json=as_json)
    if name == "certify" and "--check" in rest and absent("typer", "rich"):
        from fencepost.certification.checking import main as compare  # noqa: PLC0415

        compare([word for word in rest if word != "--check"])
    app = _app(name, as_json=as_json)
    import typer  # noqa: PLC0415

    from .common.errors import CannotRun  # noqa: PLC0415

    # typer does not export the class, and its module has moved between releases
    usage_error = cast("type[Exception]", typer.BadParameter.__mro__[1])
    try:
        status = app(args=rest, prog_name=f"fencepost {name}", standalone_mode=False)
    except CannotRun as reason:
        _cannot(name, str(reason), as_json=as_json)
    except usage_error as reason:
        message = getattr(reason, "format_message", reason.__str__)().rstrip(".")
        _cannot(name, f"{message}; fencepost {name} --help shows its options", as_json=as_json)
    except Exception as raised:  # an error of the suite: there is no result
        if isinstance(raised, ModuleNotFoundError) and (install := lacks(name, raised)):
            _cannot(name, install, as_json=as_json)
        traceback.print_exc()
        _cannot(name, f"internal error of the suite: {type(raised).__name__}: {raised}", as_json=as_json)
    raise SystemExit(status or 0)


def _doctor(words: Sequence[str], *, as_json: bool) -> NoReturn:
    """Run ``doctor``, the command that must work without any extra."""
    from .common.errors import CannotRun  # noqa: PLC0415
    from .run.doctor.report import run  # noqa: PLC0415

    try:
        run([word for word in words if word != "--json"], as_json=as_json)
    except CannotRun as reason:
        _cannot("doctor", str(reason), as_json=as_json)


def _app(name: str, *, as_json: bool) -> typer.Typer:
    """Return the command of that name, ready to be called."""
    try:
        import typer  # noqa: PLC0415

        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        app.command(name)(_function(name))
        if importlib.util.find_spec("rich") is None:  # every command prints its result with rich
            raise ModuleNotFoundError("No module named 'rich'", name="rich")
    except ModuleNotFoundError as missing:
        reason = lacks(name, missing)
        if reason is None:
            raise
        _cannot(name, reason, as_json=as_json)
    except KeyboardInterrupt:
        _cannot(name, INTERRUPTED, as_json=as_json)
    return app


def _function(name: str) -> Callable[..., None]:
    named = _FUNCTIONS.get(name, name)
    return _guarded(getattr(importlib.import_module(f"{__package__}.run.commands.{named}"), named))


def _complete(words: Sequence[str]) -> NoReturn:
    """Answer a shell that completes a line, or print or install its completion script. Only the command in the line is
    imported, since the shell asks at each Tab."""
    line = f"{os.environ.get('COMP_WORDS', '')} {os.environ.get('_TYPER_COMPLETE_ARGS', '')}".split()

    def described(text: str) -> Callable[[], None]:
        def command() -> None: ...

        command.__doc__ = text
        return command

    try:
        import typer  # noqa: PLC0415

        app = typer.Typer(name="fencepost", pretty_exceptions_enable=False)
        for name, text in COMMANDS.items():
            app.command(name)(_function(name) if name in line else described(text))
    except ModuleNotFoundError as missing:
        _cannot("", lacks("", missing) or str(missing), as_json=False)
    app(args=list(words), prog_name="fencepost", complete_var=_COMPLETE)
    raise SystemExit(0)


def _cannot(name: str, reason: str, *, as_json: bool) -> NoReturn:
    """Exit with status 2; under ``--json`` also print an object."""
    speaker = f"fencepost {name}" if name else "fencepost"
    print(f"{speaker}: {reason}", file=sys.stderr)
    if as_json:
        print(json.dumps({"command": name, "error": reason, "passed": False, "status": 2}))
    raise SystemExit(2) from None


if __name__ == "__main__":
    main()
