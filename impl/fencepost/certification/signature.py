"""SSH signatures of a certificate, made and verified by OpenSSH's ``ssh-keygen``. So the library contains no
cryptography, and an auditor can verify the same file without this project."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Final

#: The namespace of the signature: a signature that the same key made for another purpose is not accepted.
NAMESPACE: Final = "fencepost-certificate"
_SIGNER: Final = "signer"


class CannotSign(Exception):
    """``ssh-keygen`` is missing, or cannot use the key; the message says what to do."""


def sign(path: Path, key: Path) -> Path:
    """Sign a file with a private SSH key, and return the file of the signature. Raises ``CannotSign``."""
    signature = path.with_name(f"{path.name}.sig")
    signature.unlink(missing_ok=True)  # ssh-keygen asks before it replaces one
    ran = _run(["-Y", "sign", "-q", "-f", str(key), "-n", NAMESPACE, str(path)])
    if ran.returncode or not signature.is_file():
        raise CannotSign(f"ssh-keygen cannot sign with {key}: {_last(ran.stderr)}")
    return signature


def refusal(data: bytes, signature: Path, key: Path) -> str | None:
    """Return why the signature of ``data`` is not one by the public key, or None if it is. Raises ``CannotSign``."""
    try:
        public = key.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as reason:
        raise CannotSign(f"cannot read the public key {key}: {getattr(reason, 'strerror', reason)}") from None
    if "PRIVATE KEY" in public or len(public.split()) < 2:
        raise CannotSign(f"{key} is not a public SSH key; it has one line such as 'ssh-ed25519 AAAA…'")
    if not signature.is_file():
        return "the certificate is not signed"
    with tempfile.TemporaryDirectory() as scratch:
        allowed = Path(scratch, "allowed")
        allowed.write_text(f"{_SIGNER} {public}\n", encoding="utf-8")
        words = ["-Y", "verify", "-f", str(allowed), "-I", _SIGNER, "-n", NAMESPACE, "-s", str(signature)]
        ran = _run(words, data)
    return f"the signature is not one of {key} for this certificate" if ran.returncode else None


def _run(words: list[str], data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["ssh-keygen", *words], input=data, capture_output=True, check=False, timeout=60)
    except FileNotFoundError:
        raise CannotSign("signatures need ssh-keygen (Debian: apt-get install openssh-client)") from None
    except subprocess.TimeoutExpired:
        raise CannotSign("ssh-keygen did not end within 60 s; use a key without a passphrase, or an agent") from None


def _last(output: bytes) -> str:
    return (output.decode(errors="replace").strip().splitlines() or ["it gave no reason"])[-1]
