"""Every page in a browser: it fits a desktop and a phone, axe-core finds no problem, the console stays empty, and the
foot says what made it."""

from __future__ import annotations

from pathlib import Path

import pytest
from driver import Browser
from pages import MAKERS


@pytest.mark.parametrize("name", MAKERS)
def test_a_page_is_readable_on_a_desktop_and_on_a_phone(name: str, tmp_path: Path, browser: Browser) -> None:
    browser.open(MAKERS[name](tmp_path).as_uri())
    grounds = set()
    for scheme, width in (("light", 1280), ("dark", 390)):
        browser.emulate(scheme)
        browser.resize(width)
        grounds.add(browser.script("return getComputedStyle(document.body).backgroundColor"))
        assert browser.script("return document.documentElement.scrollWidth") <= width
        assert browser.problems() == [], scheme
    assert len(grounds) == 2
    told = browser.script("return document.querySelector('footer.made').innerText")
    assert {"made by", "date", "command"} <= {*told.split("\n")}


def test_the_controls_of_a_chart(tmp_path: Path, browser: Browser) -> None:
    browser.open(MAKERS["several"](tmp_path).as_uri())
    count = "document.querySelector('.tools [role=status]').textContent"

    def shown() -> int:
        return int(browser.script(f"return parseInt({count})"))

    def set_to(name: str, value: str) -> None:
        browser.script(
            f"const input = document.querySelector('.tools [name={name}]'); const value = {value!r};"
            "if (input.type === 'checkbox') input.checked = Boolean(value);"
            "else input.value = value; input.dispatchEvent(new Event(input.type === 'search' ? 'input' : 'change'));"
        )

    names = browser.script("return [...document.querySelectorAll('.tools [name]')].map(each => each.name)")
    assert names == ["routine", "scale", "group", "client", "find"]
    whole = int(browser.script("return charts[0].data.steps.length"))
    folded = shown()
    assert 10 < folded < whole
    assert "heartbeats without news" in browser.script("return document.querySelector('.bands').textContent")
    set_to("routine", "1")
    assert shown() == whole
    high = browser.script("return charts[0].height")
    set_to("scale", "1")
    assert browser.script("return charts[0].height") > high
    assert browser.script("return charts[0].rows.filter(row => row.tick).length") > 3
    set_to("client", "client-2 /127.0.1.3")
    of_client = shown()
    assert 0 < of_client < whole
    strips = browser.script("return charts[0].columns.length")
    set_to("group", "group-0")
    assert 0 < shown() < of_client
    assert 0 < browser.script("return charts[0].columns.length") < strips
    steps = browser.script("return charts[0].rows.filter(row => row.at >= 0).map(row => row.at)")
    browser.script("document.querySelector('.picture').focus()")
    for key, at in (("Home", steps[0]), ("Down", steps[1]), ("Down", steps[2]), ("Up", steps[1])):
        browser.press(key)
        assert browser.script("return charts[0].chosen") == at
        assert f"step {at} " in browser.script("return document.querySelector('.panel').textContent")
    set_to("find", f"step {steps[1]} ")
    assert shown() == 1
    link = browser.script("return location.href")
    browser.open("about:blank")
    browser.open(link)
    assert (shown(), browser.script("return charts[0].chosen")) == (1, steps[1])
    set_to("find", "")
    browser.script("document.querySelector('.bands [data-at]').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    assert browser.script("return charts[0].chosen") == steps[0]


def test_the_strips_stay_in_view_and_rules_have_their_text(tmp_path: Path, browser: Browser) -> None:
    browser.open(MAKERS["replay"](tmp_path).as_uri())
    browser.script("charts[0].picture.scrollLeft = 0; charts[0].picture.scrollTop = 200")
    right, edge = browser.script(
        "return [document.querySelector('svg.strips:not(.heads)'), charts[0].picture]"
        ".map(each => Math.round(each.getBoundingClientRect().right))"
    )
    assert 0 <= edge - right <= 20
    browser.script("charts[0].choose(12)")
    assert len(browser.script("return document.querySelector('.rule summary').title")) > 20
    browser.script("document.querySelector('.rule summary').click()")
    assert browser.script("return document.querySelector('.rule').open")
