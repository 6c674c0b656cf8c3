"""The page of ``fencepost lab`` in a browser: every control, keys, colour schemes, a phone, and a silent console."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import pytest
from driver import Browser

from fencepost_conformance.generate.lab.actions import FORMS
from fencepost_conformance.generate.lab.tours import TOURS
from fencepost_conformance.run.lab.server import LabServer

#: counts what goes wrong in the page from now on; the browser's own log has the rest
_WATCH = """
window.wrong = [];
addEventListener('error', event => wrong.push(event.message));
addEventListener('unhandledrejection', event => wrong.push(String(event.reason)));
"""


@pytest.fixture
def lab(browser: Browser) -> Iterator[Browser]:
    with LabServer(0) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            visit(browser, server.url)
            yield browser
            assert browser.script("return wrong") == []
        finally:
            browser.open("about:blank")
            server.shutdown()
            thread.join()


def visit(browser: Browser, url: str) -> None:
    browser.open(url)
    browser.wait("typeof state === 'object' && state.view && document.querySelector('#starting input')")
    browser.script(_WATCH)


def said(browser: Browser) -> str:
    return str(browser.script("return document.getElementById('said').textContent"))


def press(browser: Browser, selector: str) -> None:
    """Press a button, and wait until the page has drawn the answer."""
    browser.script(f"document.querySelector({selector!r}).click()")
    browser.wait("!state.busy")


def drawn(browser: Browser, what: str) -> Any:
    return browser.script(f"return {what}")


def start(browser: Browser, name: str, protocol: str) -> None:
    browser.script(f"at('name').value = '{name}'; at('protocol').value = '{protocol}'")
    press(browser, "#starter button")


def test_every_control_works(lab: Browser) -> None:
    used = controls(lab)
    controls_on_page = "[...document.querySelectorAll('main :is(button, select, input)[id]')]"
    on_page = set(lab.script(f"return {controls_on_page}.map(each => each.id)"))
    assert on_page == used


def controls(browser: Browser) -> set[str]:
    used: set[str] = set()

    def use(name: str, selector: str | None = None) -> None:
        used.add(name)
        press(browser, selector or f"#{name}")

    start(browser, "c1", "consumer")
    used |= {"name", "protocol"}
    use("step")
    assert "ConsumerGroupHeartbeat" in drawn(browser, "at('flying').textContent")
    use("lose")
    assert drawn(browser, "document.querySelectorAll('.row .cross').length") == 1
    use("change")
    use("second")
    assert drawn(browser, "document.querySelectorAll('#strips rect.m0').length") > 0
    use("static")
    start(browser, "c2", "consumer")
    assert "static" in drawn(browser, "at('clients').textContent")
    use("step")
    use("delay")
    use("step")
    browser.script("at('speed').value = '20'")
    used.add("speed")
    use("play")
    browser.wait("state.view.now > 9000")
    use("play")
    assert drawn(browser, "state.playing") is None
    browser.wait("!state.busy")
    use("grow")
    assert len(drawn(browser, "state.view.offsets")) == 7
    use("fail-append")
    assert "the next append fails" in drawn(browser, "at('clock').textContent")
    use("move")
    assert "no coordinator" in drawn(browser, "at('clock').textContent")
    browser.script("at('timeout').value = 'session_ms'; at('timeout-ms').value = 7000")
    used |= {"timeout", "timeout-ms"}
    press(browser, "#timeouts button")
    assert said(browser) == "new timeout: session_ms 7000"
    sentences = drawn(browser, "[...document.querySelectorAll('#actions li')].map(each => each.textContent)")
    assert "the next append fails" in sentences
    assert not [each for each in sentences if "undefined" in each]
    for _ in range(60):
        if drawn(browser, "!at('repeat').disabled"):
            break
        press(browser, "#step")
    use("repeat")
    press(browser, "#second")
    assert drawn(browser, "document.querySelector('#rows').textContent.includes('(repeated)')")
    use("quiet")
    press(browser, ".row.message")
    assert "Fields of" in drawn(browser, "at('fields').textContent")
    for action in ("Slow", "Freeze 30 s", "Crash", "Start again", "Stop"):
        press(browser, f"#clients [aria-label='{action} c2']")
        assert drawn(browser, "!at('said').className"), said(browser)
    use("compare")
    browser.wait("document.querySelectorAll('#columns svg').length === 3")
    browser.script("at('against').value = 'kafka-4.0'")
    used.add("against")
    use("releases")
    browser.wait("state.beside && document.querySelector('#apart details table')")
    assert drawn(browser, "state.start.other") == "kafka-4.0"
    for name in ("trace", "wire"):
        use(name)
        browser.wait(f"at('said').textContent.startsWith('saved lab-{name}.jsonl')")
    length = drawn(browser, "state.actions.length")
    use("back")
    assert drawn(browser, "state.actions.length") == length - 1
    use("link")
    linked = drawn(browser, "location.href")
    use("restart")
    assert drawn(browser, "[state.actions.length, state.view.now]") == [0, 0]
    use("branches")
    browser.script("at('branches').value = '0'; at('branches').dispatchEvent(new Event('change'))")
    browser.wait("!state.busy && state.actions.length > 5")
    browser.open(linked)  # in an open page
    browser.wait(f"!state.busy && state.actions.length === {length - 1}")
    browser.open("about:blank")
    visit(browser, linked)
    assert drawn(browser, "state.actions.length") == length - 1
    browser.script("at('starting').elements.partitions.value = 3")
    use("apply")
    assert drawn(browser, "[state.actions.length, state.view.offsets.length]") == [0, 3]
    browser.script("at('starting').elements.heartbeat_ms.value = 60000")
    press(browser, "#apply")
    assert "start.heartbeat_ms must be less than start.session_ms" in said(browser)
    use("tours")
    use("begin")
    assert drawn(browser, "state.chapter") == 1
    use("next")
    assert drawn(browser, "[state.chapter, state.view.group.state]") == [2, "Stable"]
    # the browser notes the answer 400 of the refused start
    assert ["400" in each for each in browser.console()] == [True]
    return used


def test_another_release_is_compared_message_by_message(lab: Browser) -> None:
    """The tour of the moved coordinator ends with a step that 4.4 does differently."""
    lab.script("at('tours').value = 'fail-over'")
    press(lab, "#begin")
    while not drawn(lab, "at('next').disabled"):
        press(lab, "#next")
    lab.script("at('against').value = 'kafka-4.4'")
    press(lab, "#releases")
    lab.wait("document.querySelector('#apart details table')")
    apart = drawn(lab, "at('apart').textContent")
    for text in ("kafka-4.3 and kafka-4.4: 1 step differs", "They part at 38.235 s", "M-LEAVE-08", "Only kafka-4.3: "):
        assert text in apart
    alone = drawn(lab, "[...document.querySelectorAll('#apart .alone')].map(each => each.textContent)")
    assert "TargetEpoch billing: assignment epoch 5" in alone
    press(lab, "#apart details button")
    assert drawn(lab, "document.querySelectorAll('.row.apart[aria-current]').length") == 1
    assert "Under kafka-4.4" in drawn(lab, "at('fields').textContent")
    for scheme, width in (("light", 1280), ("dark", 390)):
        lab.emulate(scheme)
        lab.resize(width)
        assert drawn(lab, "document.documentElement.scrollWidth") <= width
        assert lab.problems() == [], scheme
    foot = drawn(lab, "document.querySelector('footer.made').innerText")
    assert {"made by", "commit", "date", "command", "seed", "target", "profile"} <= {*foot.split("\n")}
    assert "kafka-4.4" in foot
    linked = drawn(lab, "location.href")
    lab.open("about:blank")
    visit(lab, linked)
    lab.wait("state.beside")
    press(lab, "#second")
    assert drawn(lab, "[state.beside, at('apart').children.length]") == [None, 0]


@pytest.mark.all
def test_keys_and_what_a_row_shows(lab: Browser) -> None:
    keys: list[tuple[str, Callable[[], bool]]] = [
        ("s", lambda: drawn(lab, "state.actions.at(-1).do") == "step"),
        ("n", lambda: drawn(lab, "state.actions.at(-1).do") == "change"),
        ("r", lambda: drawn(lab, "state.actions.at(-1).ms") == 1000),
        ("b", lambda: drawn(lab, "state.actions.at(-1).do") == "change"),
        ("Up", lambda: drawn(lab, "document.querySelectorAll('.row[aria-current]').length") == 1),
        ("Home", lambda: drawn(lab, "state.actions.length") == 0),
    ]
    start(lab, "c1", "consumer")
    lab.script("document.activeElement.blur()")
    for key, holds in keys:
        lab.press(key)
        time.sleep(0.1)
        lab.wait("!state.busy")
        assert holds(), key
    start(lab, "c1", "eager")
    lab.script("document.activeElement.blur()")
    lab.press(" ")
    lab.wait("state.view.now > 3000")
    lab.press(" ")
    assert drawn(lab, "state.playing") is None
    lab.wait("!state.busy && document.querySelector('#machine .box.now')")
    assert drawn(lab, "document.querySelector('#machine .name.now').textContent") == "Stable"
    number = drawn(lab, "state.view.rows.find(row => row.message && row.message.api === 'SyncGroup').number")
    press(lab, f"[data-number='{number}']")
    shown = drawn(lab, "at('fields').textContent")
    assert "generation_id" in shown
    assert "C-SYNC-" in shown


@pytest.mark.all
def test_every_tour_is_played_to_its_end(lab: Browser) -> None:
    for name in TOURS:
        lab.script(f"at('tours').value = '{name}'")
        press(lab, "#begin")
        texts = [drawn(lab, "at('chapter').textContent")]
        while not drawn(lab, "at('next').disabled"):
            press(lab, "#next")
            texts.append(drawn(lab, "at('chapter').textContent"))
        assert len(texts) == len(TOURS[name].chapters)
        assert all(chapter.text in text for chapter, text in zip(TOURS[name].chapters, texts, strict=True))
        assert drawn(lab, "at('said').className") == ""


@pytest.mark.all
def test_light_and_dark_desktop_and_phone(lab: Browser) -> None:
    start(lab, "c1", "consumer")
    for _ in range(5):
        press(lab, "#second")
    grounds = set()
    for scheme in ("light", "dark"):
        lab.emulate(scheme)
        grounds.add(lab.script("return getComputedStyle(document.body).backgroundColor"))
        for width in (1280, 390):
            lab.resize(width)
            assert lab.script("return document.documentElement.scrollWidth") <= width
            assert unnamed(lab) == []
    assert len(grounds) == 2


@pytest.mark.all
def test_axe_finds_no_problem(lab: Browser) -> None:
    """Contrast, labels and roles, by axe-core. It is in the package axe-core-python."""
    lab.script("at('tours').value = 'reconciliation'")
    press(lab, "#begin")
    press(lab, "#next")
    lab.wait("document.querySelector('#machine .box.now')")
    press(lab, "#compare")
    lab.wait("document.querySelectorAll('#columns svg').length === 3")
    press(lab, ".row.message")
    for scheme in ("light", "dark"):
        lab.emulate(scheme)
        assert lab.problems() == [], scheme


def unnamed(browser: Browser) -> list[str]:
    """Return the controls that have no name for a screen reader."""
    found: list[str] = browser.script(
        "return [...document.querySelectorAll('button, input, select')].filter(each => "
        "!(each.textContent.trim() && each.tagName === 'BUTTON') && !each.labels?.length && !each.ariaLabel)"
        ".map(each => each.outerHTML)"
    )
    return found


def test_each_action_has_a_sentence(lab: Browser) -> None:
    assert drawn(lab, "Object.keys(SENTENCES)") == [*FORMS]


def test_a_new_session_says_how_to_begin(lab: Browser) -> None:
    assert drawn(lab, "at('strips').textContent") == "Start a client or begin a tour, then let time pass."
    start(lab, "c1", "consumer")
    assert said(lab) == "c1 starts (consumer)"
    press(lab, "#second")
    assert "1.0 s" in drawn(lab, "at('strips').textContent")
