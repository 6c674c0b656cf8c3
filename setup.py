"""The part of the build that pyproject.toml cannot express.

A wheel has the rule book, docs/rules, within the package that reads it, the specification within the model, and the
certificate of its files if there is a current one (docs/certificate.md). And where the environment has
FENCEPOST_COMPILED set, coordinator, codec and server are compiled by mypyc: the same source, the same outcomes, faster
(docs/embedding.md). With FENCEPOST_COMPILED=codec the codec alone is.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_py import build_py

#: The modules between a port and the coordinators, and those that write records.
SERVED = (
    "aio/engine.py",
    "aio/led.py",
    "host/broker.py",
    "host/parts.py",
    "fencepost_server/dispatch.py",
    "fencepost_server/net/connection.py",
    "fencepost_server/observe/groups.py",
    "fencepost_server/observe/rebalances.py",
    "store/packed.py",
    "store/tables.py",
    "store/worker.py",
)


HERE = Path(__file__).resolve().parent


class Complete(build_py):
    """Builds the packages, and beside them the text of the rules, the specification and the certificate."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return  # the package is used where it lies, and finds docs/rules and spec
        sys.path.insert(0, str(HERE / "impl"))
        from fencepost.certification.building import reason_to_leave_out  # noqa: PLC0415  needs the path
        from fencepost.certification.files import SIGNATURE, PartFolders  # noqa: PLC0415

        built = PartFolders.of_wheel(Path(self.build_lib))
        for source, pattern, target in (
            (HERE / "docs" / "rules", "*.md", built.rules),
            (HERE / "spec", "**/*", built.specification),
        ):
            for each in sorted(source.glob(pattern)):
                if each.is_file():
                    copy = target / each.relative_to(source)
                    self.mkpath(str(copy.parent))
                    self.copy_file(str(each), str(copy))
        kept = PartFolders.of_checkout(HERE).certificate
        for stale in (built.certificate, built.core / SIGNATURE):
            stale.unlink(missing_ok=True)
        release, compiled = (bool(os.environ.get(f"FENCEPOST_{each}")) for each in ("RELEASE", "COMPILED"))
        if reason := reason_to_leave_out(kept, built, compiled=compiled, release=release):
            if release:
                sys.exit(f"FENCEPOST_RELEASE is set, and the wheel would have no certificate: {reason}")
            print(f"the wheel has no certificate: {reason}", file=sys.stderr)
            return
        self.copy_file(str(kept), str(built.certificate))
        if kept.with_name(SIGNATURE).is_file():
            self.copy_file(str(kept.with_name(SIGNATURE)), str(built.core / SIGNATURE))


def compiled_sources(*, codec_alone: bool) -> list[Path]:
    """The files of the codec of records, and of the path of a request through a server and the coordinator. The quirks
    are not compiled: they replace functions of the coordinator by name, and are off when speed matters."""
    core = Path("impl", "fencepost")
    sources = sorted(core.glob("codec/*.py"))
    if not codec_alone:
        alone = (core / "quirks.py", core / "protocol" / "logged.py")
        served = [(core.parent if each.startswith("fencepost_") else core) / each for each in SERVED]
        sources = [*alone, *served, *sorted(core.glob("coordinator/**/*.py")), *sources]
    left = {
        core / "coordinator" / "__init__.py",
        core / "codec" / "__init__.py",
        *core.glob("coordinator/quirks/**/*.py"),
    }
    return [each for each in sources if each not in left]


def compiled() -> list[Extension]:
    try:
        from mypyc.build import mypycify  # noqa: PLC0415  only a build that asks for it needs mypy
    except ImportError:
        sys.exit("FENCEPOST_COMPILED needs mypy: pip install mypy, then build with --no-build-isolation")
    sources = compiled_sources(codec_alone=os.environ["FENCEPOST_COMPILED"] == "codec")
    level = os.environ.get("MYPYC_OPT_LEVEL", "3")
    return mypycify(["--follow-imports=silent", *map(str, sources)], opt_level=level)


setup(
    cmdclass={"build_py": Complete},
    ext_modules=compiled() if os.environ.get("FENCEPOST_COMPILED") else [],
)
