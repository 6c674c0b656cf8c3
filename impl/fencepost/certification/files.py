"""The files that a certificate is about, where they lie, and their digests.

A wheel has all four parts below its two packages. A checkout has the specification and the rules elsewhere. The names
are the same in both: ``fencepost/…``, ``fencepost_model/…``, ``specification/…``, ``rules/…``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: The certificate in the package, and its signature.
NAME: Final = "certificate.json"
SIGNATURE: Final = f"{NAME}.sig"
#: Folders inside the packages of a wheel that are separate parts.
RULES_IN_WHEEL: Final = ("rulebook", "text")
SPECIFICATION_IN_WHEEL: Final = ("specification",)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFolders:
    """The folders of the parts; one that is not there has no files."""

    core: Path
    model: Path
    specification: Path
    rules: Path

    @classmethod
    def of_wheel(cls, site: Path) -> PartFolders:
        """Return the folders below the directory into which a wheel was installed."""
        core, model = site / "fencepost", site / "fencepost_model"
        return cls(
            core=core,
            model=model,
            specification=model.joinpath(*SPECIFICATION_IN_WHEEL),
            rules=core.joinpath(*RULES_IN_WHEEL),
        )

    @classmethod
    def of_checkout(cls, root: Path) -> PartFolders:
        """Return the folders of a checkout."""
        return cls(
            core=root / "impl" / "fencepost",
            model=root / "model" / "fencepost_model",
            specification=root / "spec",
            rules=root / "docs" / "rules",
        )

    @classmethod
    def within(cls, folder: Path) -> PartFolders:
        """Return the folders below a checkout, or below a directory with an installed wheel."""
        return cls.of_checkout(folder) if (folder / "impl" / "fencepost").is_dir() else cls.of_wheel(folder)

    @classmethod
    def installed(cls) -> PartFolders:
        """Return the folders of the package that is running."""
        package = Path(__file__).resolve().parents[1]
        checkout = package.parents[1]
        return cls.of_checkout(checkout) if (checkout / "spec").is_dir() else cls.of_wheel(package.parent)

    @property
    def certificate(self) -> Path:
        """Where the certificate of these files lies."""
        return self.core / NAME

    def digests(self) -> dict[str, str]:
        """Return the digest of each file (SHA-256), by its name in the certificate."""
        return dict(sorted(self._digests()))

    def _digests(self) -> Iterator[tuple[str, str]]:
        core = {self.core / NAME, self.core / SIGNATURE}
        for part, folder, elsewhere in (
            ("fencepost", self.core, self.rules),
            ("fencepost_model", self.model, self.specification),
            ("specification", self.specification, None),
            ("rules", self.rules, None),
        ):
            for path in folder.rglob("*"):
                if "__pycache__" in path.parts or path in core or (elsewhere and path.is_relative_to(elsewhere)):
                    continue
                if path.is_file():
                    yield f"{part}/{path.relative_to(folder).as_posix()}", digest(path)


def digest(path: Path) -> str:
    """Return the digest of a file (SHA-256)."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
