"""The page of ``fencepost graph`` in a browser: walking by keys and by clicks, searching, both colour schemes."""

from __future__ import annotations

from pathlib import Path

import pytest
from driver import Browser

from fencepost_conformance.cli import main


def steps(browser: Browser) -> int:
    return int(browser.script("return path.length - 1"))


def said(browser: Browser) -> str:
    return str(browser.script("return document.getElementById('said').textContent"))


def test_a_graph_is_walked_and_searched(tmp_path: Path, browser: Browser) -> None:
    page = tmp_path / "graph.html"
    with pytest.raises(SystemExit) as ended:
        main(["graph", "KafkaRefusalWaits", "--limit-states", "3000", "-o", str(page)])
    assert ended.value.code == 0
    browser.open(page.as_uri())
    assert steps(browser) == 0
    browser.press("1")
    browser.press("Down", "Enter")
    assert steps(browser) == 2
    changed = browser.script("return document.querySelectorAll('tr.changed').length")
    assert changed > 0
    browser.press("c")
    assert browser.script("return document.querySelectorAll('#state tr').length") == changed
    browser.press("Left")
    assert steps(browser) == 1
    browser.press("Right", "Right", "Home")
    assert steps(browser) == 0

    browser.press("/", *"group.state === 'Stable'", "Enter")
    assert browser.script("return values(now()).group.state") == "Stable"
    first = said(browser)
    browser.script("document.getElementById('next').click()")
    assert browser.script("return values(now()).group.state") == "Stable"
    assert said(browser) != first
    browser.script("at('predicate').value = 'group.state ==='; search(0)")
    assert "not an expression" in said(browser)
    browser.script("at('predicate').value = 'grup.state'; search(0)")
    assert "grup is not defined" in said(browser)
    browser.script("at('predicate').value = 'faultsLeft > 9'; search(0)")
    assert said(browser).startswith("none of ")

    walked = browser.script("return path.map(step => step.state)")
    browser.script("location.reload()")
    assert browser.script("return path.map(step => step.state)") == walked

    grounds = set()
    for scheme, width in (("light", 1280), ("dark", 390)):
        browser.emulate(scheme)
        browser.resize(width)
        grounds.add(browser.script("return getComputedStyle(document.body).backgroundColor"))
        assert browser.script("return document.documentElement.scrollWidth") <= width
        assert browser.problems() == [], scheme
    assert len(grounds) == 2
    assert browser.script("return [...document.querySelectorAll('[src], link:not([rel=icon])')].length") == 0
