"""The certificate as data, and as an in-toto statement (v1).

The statement's subjects are the SHA-256 digests of the files of the core, the model, the specification and the rule
book. The predicate lists each check with its command, its counts, its seed and its versions. Its ``seal`` is the digest
of all the rest, so that an accidental edit shows. An edit whose author renews the seal shows only in a signature.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

STATEMENT: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "urn:fencepost:certificate:1"

#: The releases of Apache Kafka that the core is compared with.
RELEASES: Final = ("4.0.2", "4.1.2", "4.2.2", "4.3.1", "4.4.0")
#: Each check that a certificate must have, and what it shows.
CLAIMS: Final[Mapping[str, str]] = {
    "specification-model": "the TLA+ specification and the model have equal state graphs",
    "promises": "each property holds in the model, and fails in the configurations that lack one guard",
    "core-model": "in random traces the core does only what the model allows",
    **{
        f"core-kafka-{release}": f"in random traces the core, the model and Apache Kafka {release} agree at each step"
        for release in RELEASES
    },
    "mutants": "the suite finds faults that are planted in the core",
    "store-kills": "a store whose process is killed keeps each acknowledged record, and damaged stores are found",
}
#: Links of the chain of evidence that no certificate has, and the command that shows each.
NOT_COVERED: Final[Mapping[str, str]] = {
    "real brokers and clients over the wire": "fencepost conform HOST:PORT, fencepost validate TRACE",
    "the group members against Apache Kafka's own client": "fencepost conform --side member --target kafka:RELEASE",
}


class BadCertificate(ValueError):
    """The text is not a certificate of Fencepost; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A file that the certificate is about. ``name``: its part and path, such as ``fencepost/log/partition.py``."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check that was made. ``name``: a key of ``CLAIMS``; ``command``: what repeats it; ``verdict``: ``passed``,
    ``failed`` or ``incomplete``; ``counts``: how much was done; ``versions``: of the programs that it used."""

    name: str
    claim: str
    command: str
    verdict: str
    counts: Mapping[str, int | float]
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingLink:
    """A check of ``CLAIMS`` that could not be made, and why."""

    name: str
    claim: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What was checked, for exactly which files.

    ``size``: ``small``, ``full`` or ``custom``; ``made_at``: UTC, ISO 8601; ``commit``: of the checkout, with
    ``+changes`` if files differed from it, None outside git; ``suite``: the digest of the files that made the checks;
    ``seal``: the digest of all the rest (``sealed``).
    """

    version: str
    size: str
    made_at: str
    commit: str | None
    suite: str
    subjects: tuple[Subject, ...]
    checks: tuple[Check, ...]
    missing: tuple[MissingLink, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    seal: str = ""

    @property
    def digests(self) -> dict[str, str]:
        """The digest of each subject, by name."""
        return {each.name: each.sha256 for each in self.subjects}

    def sealed(self) -> Certificate:
        """Return the same certificate with the seal that its content asks for."""
        return replace(self, seal=_seal(as_statement(replace(self, seal=""))))


def problems(certificate: Certificate) -> Iterator[str]:
    """Yield why the certificate cannot be accepted, whatever is installed: it was edited, a check is absent, or a check
    did not pass. ``examine`` reports the missing links that the certificate names; they are not in here."""
    if certificate.seal != certificate.sealed().seal:
        yield "the certificate was changed after it was made"
    named = [*(each.name for each in certificate.checks), *(each.name for each in certificate.missing)]
    for name in CLAIMS:
        if named.count(name) != 1:
            yield f"check {name} is not in the certificate" if name not in named else f"check {name} is there twice"
    for each in certificate.checks:
        if each.name not in CLAIMS:
            yield f"check {each.name} is unknown to this version"
        elif each.verdict != "passed":
            yield f"check {each.name}: {each.verdict}"
        elif not each.counts.get("passed"):
            yield f"check {each.name} decided nothing"


def as_statement(certificate: Certificate) -> dict[str, Any]:
    """Return the in-toto statement."""
    predicate = asdict(certificate)
    del predicate["subjects"]
    return {
        "_type": STATEMENT,
        "subject": [{"name": each.name, "digest": {"sha256": each.sha256}} for each in certificate.subjects],
        "predicateType": PREDICATE,
        "predicate": {**predicate, "not_covered": dict(NOT_COVERED)},
    }


def as_text(certificate: Certificate) -> str:
    """Return the statement as JSON, as it is written to a file."""
    return json.dumps(as_statement(certificate), indent=1, sort_keys=True) + "\n"


def read_text(text: str | bytes) -> Certificate:
    """Return the certificate in a statement. Raises ``BadCertificate``."""
    try:
        statement = json.loads(text)
    except ValueError as reason:
        raise BadCertificate(f"it is not JSON: {reason}") from None
    match statement:
        case {"_type": "https://in-toto.io/Statement/v1", "predicateType": str(kind)} if kind != PREDICATE:
            raise BadCertificate(f"its predicate type is {kind}; this version reads {PREDICATE}")
        case {"_type": "https://in-toto.io/Statement/v1", "subject": list(subjects), "predicate": dict(predicate)}:
            pass
        case _:
            raise BadCertificate("it is not an in-toto statement (v1)")
    try:
        # what this version does not know would be lost, and with it the edit
        if predicate.pop("not_covered", None) != NOT_COVERED:
            raise BadCertificate("its list of links that are not covered was changed")
        if not predicate.get("seal"):
            raise BadCertificate("it has no seal")
        made = Certificate(
            subjects=tuple(Subject(name=each["name"], sha256=each["digest"]["sha256"]) for each in subjects),
            checks=tuple(Check(**each) for each in predicate.pop("checks")),
            missing=tuple(MissingLink(**each) for each in predicate.pop("missing")),
            **predicate,
        )
    except (KeyError, TypeError, AttributeError) as reason:
        raise BadCertificate(f"a field is missing or unknown: {reason}") from None
    if not all(isinstance(each.counts, dict) and isinstance(each.verdict, str) for each in made.checks):
        raise BadCertificate("a field has another type than it should have: counts or verdict of a check")
    return made


def digest_of(parts: Iterable[tuple[str, str]]) -> str:
    """Return one digest of files, from their names and digests in any order."""
    checksums = "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(parts))
    return hashlib.sha256(checksums.encode()).hexdigest()


def _seal(statement: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(statement, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
