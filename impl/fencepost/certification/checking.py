"""Compare a certificate with the installed files: ``fencepost certify --check``.

With the library only, ``python -m fencepost.certification`` does the same.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from .files import PartFolders
from .signature import CannotSign, refusal
from .statement import NOT_COVERED, BadCertificate, Certificate, problems, read_text

COMMAND: Final = "certify --check"
#: the most differing files that are printed; --json has all
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of a check. ``refused``: why the certificate does not hold for the installed files, a line each;
    ``missing``: the links that the certificate itself says are missing."""

    certificate: Certificate
    refused: tuple[str, ...]
    missing: tuple[str, ...]
    signature: str

    @property
    def verdict(self) -> str:
        """``passed``, ``failed``, or ``incomplete`` if links are missing."""
        return "failed" if self.refused else "incomplete" if self.missing else "passed"

    @property
    def status(self) -> int:
        """The exit status."""
        return {"passed": 0, "failed": 1, "incomplete": 2}[self.verdict]


def examine(layout: PartFolders, path: Path | None = None, key: Path | None = None) -> Finding:
    """Compare a certificate with the files of a layout.

    Args:
        layout: the files.
        path: the certificate; default: the one beside the files.
        key: a public SSH key that must have signed it; the signature is beside the certificate.

    Raises:
        OSError: the certificate cannot be read.
        BadCertificate: it is not a certificate.
        CannotSign: the key cannot be used.
    """
    path = path or layout.certificate
    data = path.read_bytes()
    certificate = read_text(data)
    signature = path.with_name(f"{path.name}.sig")
    unsigned = None if key is None else refusal(data, signature, key)
    if key is not None:
        signature_status = unsigned or f"signed by {key}"
    else:
        signature_status = "signed; --key KEY.pub verifies the signature" if signature.is_file() else "not signed"
    return Finding(
        certificate=certificate,
        refused=(
            *([unsigned] if unsigned else []),
            *problems(certificate),
            *differences(certificate.digests, layout.digests()),
        ),
        missing=tuple(f"{each.name}: {each.why}" for each in certificate.missing),
        signature=signature_status,
    )


def differences(certified: Mapping[str, str], installed: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each file that differs."""
    for name in sorted({*certified, *installed}):
        if name not in installed:
            yield f"{name}: not installed"
        elif name not in certified:
            yield f"{name}: not in the certificate"
        elif certified[name] != installed[name]:
            yield f"{name}: changed since it was certified"


def report(layout: PartFolders, path: Path | None, key: Path | None, *, as_json: bool) -> NoReturn:
    """Print what ``examine`` finds, and exit with its status; 2 if there is nothing to examine."""
    try:
        finding = examine(layout, path, key)
    except FileNotFoundError:
        where = path or layout.certificate
        cannot(f"there is no certificate at {where}; in a checkout, 'fencepost certify' makes one", as_json=as_json)
    except OSError as reason:
        cannot(f"{reason.filename}: {reason.strerror}", as_json=as_json)
    except BadCertificate as reason:
        cannot(f"{path or layout.certificate} is not a certificate: {reason}", as_json=as_json)
    except CannotSign as reason:
        cannot(str(reason), as_json=as_json)
    if as_json:
        print(json.dumps(_as_json(finding)))
    else:
        print("\n".join(lines(finding)))
    raise SystemExit(finding.status)


def cannot(reason: str, *, as_json: bool) -> NoReturn:
    """Exit with status 2 and one line; under ``--json`` also print an object."""
    print(f"fencepost {COMMAND}: {reason}", file=sys.stderr)
    if as_json:
        print(json.dumps({"command": COMMAND, "error": reason, "passed": False, "status": 2}))
    raise SystemExit(2)


def lines(finding: Finding) -> Iterator[str]:
    """Yield the lines for a terminal."""
    made = finding.certificate
    if not finding.refused:
        for each in made.checks:
            counts = ", ".join(f"{value:,} {name.replace('_', ' ')}" for name, value in each.counts.items())
            yield f"  {each.name}: {each.claim} ({counts})"
        for what, command in NOT_COVERED.items():
            yield f"  not covered: {what} ({command})"
    yield from (f"missing: {each}" for each in finding.missing)
    yield from (f"refused: {each}" for each in finding.refused[:_SHOWN])
    if len(finding.refused) > _SHOWN:
        yield f"refused: and {len(finding.refused) - _SHOWN:,} more (--json has all)"
    yield (
        f"{COMMAND}: {finding.verdict} ({len(made.subjects):,} files of fencepost {made.version}, "
        f"size {made.size}, made {made.made_at}, {finding.signature})"
    )


def _as_json(finding: Finding) -> dict[str, object]:
    made = finding.certificate
    return {
        "command": COMMAND,
        "verdict": finding.verdict,
        "passed": finding.verdict == "passed",
        "status": finding.status,
        "counts": {"files": len(made.subjects), "checks": len(made.checks), "refused": len(finding.refused)},
        "refused": finding.refused,
        "missing": finding.missing,
        "not_covered": dict(NOT_COVERED),
        "signature": finding.signature,
        "size": made.size,
        "made_at": made.made_at,
        "version": made.version,
        "commit": made.commit,
    }


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        cannot(f"{message}; --help shows the options", as_json="--json" in sys.argv)


def main(words: Sequence[str] | None = None) -> NoReturn:
    """Check the certificate with the options of a command line."""
    parser = _Parser(prog="python -m fencepost.certification", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("certificate", nargs="?", type=Path, help="default: the one in the installed package")
    parser.add_argument("--installed", type=Path, metavar="DIR", help="check this site-packages or checkout instead")
    parser.add_argument("--key", type=Path, metavar="FILE", help="a public SSH key that must have signed it")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    given = parser.parse_args(words)
    report(layout_of(given.installed, as_json=given.json), given.certificate, given.key, as_json=given.json)


def layout_of(folder: Path | None, *, as_json: bool) -> PartFolders:
    """Return the layout of a folder; default: of the running package. Exits with status 2 if nothing is there."""
    layout = PartFolders.installed() if folder is None else PartFolders.within(folder)
    if not layout.core.is_dir():
        cannot(f"there is no package fencepost in {folder}", as_json=as_json)
    return layout
