"""A headless Chromium, driven by ChromeDriver over its own protocol (WebDriver)."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

#: no network, no sandbox (tests may run as root)
_OPTIONS: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--window-size=1300,900"),
)
#: codes of keys without a character
KEYS: Final = {
    "Left": "\ue012",
    "Up": "\ue013",
    "Right": "\ue014",
    "Down": "\ue015",
    "Enter": "\ue007",
    "Home": "\ue011",
}


class Browser:
    def __init__(self, base: str, profile: str) -> None:
        self.base = base
        options = {"binary": shutil.which("chromium"), "args": [*_OPTIONS, f"--user-data-dir={profile}"]}
        capabilities = {"alwaysMatch": {"goog:chromeOptions": options}}
        self.session = f"/session/{self.ask('POST', '/session', {'capabilities': capabilities})['sessionId']}"

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(self.base + path, data, method=method), timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, url: str) -> None:
        self.ask("POST", f"{self.session}/url", {"url": url})

    def script(self, text: str) -> Any:
        """Run a script and return its result."""
        return self.ask("POST", f"{self.session}/execute/sync", {"script": text, "args": []})

    def press(self, *keys: str) -> None:
        """Press keys, each a character or a name in ``KEYS``."""
        codes = [KEYS.get(key, key) for key in keys]
        actions = [{"type": kind, "value": code} for code in codes for kind in ("keyDown", "keyUp")]
        self.ask("POST", f"{self.session}/actions", {"actions": [{"type": "key", "id": "k", "actions": actions}]})

    def emulate(self, scheme: str) -> None:
        """Prefer a light or a dark page."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._command("Emulation.setEmulatedMedia", {"features": features})

    def resize(self, width: int) -> None:
        """Show the page as wide as this, in pixels; below 600 as on a phone."""
        metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
        self._command("Emulation.setDeviceMetricsOverride", metrics)

    def _command(self, name: str, params: dict[str, Any]) -> None:
        self.ask("POST", f"{self.session}/goog/cdp/execute", {"cmd": name, "params": params})

    def console(self) -> list[str]:
        """Return what the console shows since the last call."""
        logged = self.ask("POST", f"{self.session}/se/log", {"type": "browser"})
        return [each["message"] for each in logged]

    def wait(self, condition: str) -> None:
        """Wait until a condition, a JavaScript expression, is true. Raises ``AssertionError`` after a few seconds."""
        for _ in range(150):
            if self.script(f"return Boolean({condition})"):
                return
            time.sleep(0.05)
        raise AssertionError(f"{condition} did not become true")

    def problems(self) -> list[list[str]]:
        """Return what axe-core finds wrong: contrast, labels and roles. Skips the test if axe-core is missing."""
        found = find_spec("axe_core_python")
        if found is None or found.origin is None:
            pytest.skip("axe-core is not installed (package axe-core-python)")
        self.script((Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8"))
        run = "axe.run({resultTypes: ['violations']}).then(found => { window.found = found.violations; })"
        self.script(f"window.found = null; {run}")
        self.wait("window.found")
        script = "found.flatMap(each => each.nodes.map(node => [each.id, node.html.slice(0, 120)]))"
        problems: list[list[str]] = self.script(f"return {script}")
        return problems


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser; skip the test if there is none."""
    driver = shutil.which("chromedriver")
    if driver is None or shutil.which("chromium") is None:
        pytest.skip("Chromium and ChromeDriver are not installed (packages chromium, chromium-driver)")
    with tempfile.TemporaryDirectory(prefix="fencepost-browser-") as profile:
        process = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert process.stdout is not None
            line = next(line for line in process.stdout if "successfully on port" in line)
            base = f"http://127.0.0.1:{line.split('port ')[-1].strip().rstrip('.')}"
            browser = _started(base, profile)
            try:
                yield browser
            finally:
                with suppress(URLError, OSError):
                    browser.ask("DELETE", browser.session)
        finally:
            process.terminate()
            process.communicate(timeout=30)


def _started(base: str, profile: str) -> Browser:
    for _ in range(20):
        with suppress(URLError):
            return Browser(base, profile)
        time.sleep(0.2)
    return Browser(base, profile)
