"""Every page in a browser: it fits a desktop and a phone, axe-core finds no problem, the console stays empty, and the
foot says what made it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import unquote

import pytest
from driver import Browser
from pages import MADE, MAKERS, history

from fencepost_conformance.show.report.chart import Chart
from fencepost_conformance.show.report.chart_page import chart_html
from fencepost_conformance.show.report.steps import Answer, Kind, StepWords
from fencepost_server.look.page import page
from fencepost_server.observe.page import status_page

STATE = {
    "listen": "127.0.0.1:9092", "profile": "kafka-4.3", "connections": 2, "topics": 1, "requests": 7, "groups_total": 1,
    "rebalances_total": 1,
    "groups": [{
        "group": "<b>orders", "type": "consumer", "state": "Stable", "assignor": "uniform", "epoch": 3, "lag": 4,
        "members": [{"member": "m", "instance": "i", "client": "c", "host": "/127.0.0.1", "assignment": {"t": [0, 1]},
                     "target": {"t": [0]}}],
        "offsets": [{"topic": "t", "partition": 0, "committed": 1, "end": 5, "lag": 4, "flag": "behind"}],
    }],
    "rebalances": [{"at": "2026-01-02T03:04:05.000Z", "group_id": "orders", "protocol": "consumer", "converted": True,
                    "generation": 3, "cause": "a member joined", "removed": "", "leader": None, "state": "done",
                    "duration_ms": 5}],
}  # fmt: skip


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
    footer = browser.script("return document.querySelector('footer.made').innerText")
    assert {"made by", "date", "command"} <= {*footer.split("\n")}


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


def test_a_history_is_filtered_by_member_and_its_strips_stay(tmp_path: Path, browser: Browser) -> None:
    browser.open(MAKERS["history"](tmp_path).as_uri())
    visible = "[...document.querySelectorAll({!r})].filter(each => each.style.display !== 'none')"
    rows, strips = (f"return {visible.format(each)}.length" for each in ("tr[data-about]", "rect[data-about]"))
    everything = browser.script(rows), browser.script(strips)
    member = browser.script("return document.querySelector('rect[data-about]').dataset.about")
    browser.script(
        "const only = document.querySelector('.filter [name=member]');"
        f"only.value = {member}[0]; only.dispatchEvent(new Event('change'))"
    )
    of_member = browser.script(rows), browser.script(strips)
    assert 0 < of_member[0] < everything[0]
    assert 0 < of_member[1] < everything[1]
    counted = browser.script(
        f"return [...new Set({visible.format('rect[data-about]')}.map(each => each.dataset.about))]"
    )
    assert counted == [member]
    assert f"{of_member[0]} of {everything[0]} rows" in browser.script(
        "return document.querySelector('.filter [role=status]').textContent"
    )
    link = browser.script("return location.href")
    browser.open("about:blank")
    browser.open(link)
    assert (browser.script(rows), browser.script(strips)) == of_member
    browser.script(
        "const all = document.querySelector('.filter [name=member]'); all.value = '';"
        "all.dispatchEvent(new Event('change')); scrollTo(0, document.body.scrollHeight)"
    )
    top = browser.script("return Math.round(document.querySelector('.held').getBoundingClientRect().top)")
    assert top == 0
    browser.script(
        "const find = document.querySelector('.filter [name=find]'); find.value = 'joined';"
        "find.dispatchEvent(new Event('input'))"
    )
    assert 0 < browser.script(rows) < everything[0]


@pytest.fixture
def served() -> Iterator[str]:
    """The status page and its state, on a port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = json.dumps(STATE) if self.path == "/state" else status_page(MADE)
            self.send_response(200)
            self.send_header(
                "Content-Type", "application/json" if self.path == "/state" else "text/html; charset=utf-8"
            )
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing for a request."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def test_the_status_page_of_the_server(served: str, browser: Browser) -> None:
    browser.open(served)
    browser.wait("document.querySelectorAll('#groups table').length === 2")
    assert browser.script("return document.querySelector('#groups h2').textContent") == "<b>orders"
    assert "a member joined" in browser.script("return document.getElementById('rebalances').textContent")
    for scheme, width in (("light", 1280), ("dark", 390)):
        browser.emulate(scheme)
        browser.resize(width)
        assert browser.script("return document.documentElement.scrollWidth") <= width
        assert browser.problems() == [], scheme
    assert "1.2.3" in browser.script("return document.querySelector('footer.made').innerText")
    browser.open("about:blank")


def until_it_rests(browser: Browser, position: str) -> None:
    """Wait until a scroll by keys has ended: on a busy machine it would cancel the scroll to a link's target."""
    before, now = -1, browser.script(f"return {position}")
    while before != now:
        time.sleep(0.3)
        before, now = now, browser.script(f"return {position}")


def test_a_failing_cell_of_the_matrix_leads_to_its_exchange(tmp_path: Path, browser: Browser) -> None:
    """By keys, on a phone: the table scrolls in its frame, and a link leads to the exchange."""
    browser.open(MAKERS["matrix"](tmp_path).as_uri())
    browser.resize(390)
    links = browser.script("return [...document.querySelectorAll('table a')].map(each => each.hash)")
    assert len(links) > 10
    for link in links:
        name = unquote(link[1:])
        exchange = (
            f"(() => {{ let each = document.getElementById({name!r}); while (each.tagName !== 'PRE')"
            "each = each.nextElementSibling; return each; })()"
        )
        assert browser.script(f"return document.getElementById({name!r}).tagName") == "H3"
        assert "client 1 sends JoinGroup v9" in browser.script(f"return {exchange}.textContent")
    frame = "document.activeElement"
    for which in ("[role=region]", "pre"):
        browser.script(f"document.querySelector({which!r}).focus()")
        assert browser.script(f"return {frame}.scrollWidth > {frame}.clientWidth")
        browser.press("Right", "Right", "Right")
        browser.wait(f"{frame}.scrollLeft > 0")
        until_it_rests(browser, f"{frame}.scrollLeft")
        assert browser.script("return scrollX") == 0
    browser.script(f"[...document.querySelectorAll('table a')].find(a => a.hash === {links[3]!r}).focus()")
    browser.press("Enter")
    target = f"document.getElementById({unquote(links[3][1:])!r})"
    browser.wait(f"Math.abs({target}.getBoundingClientRect().top) < 400")
    assert browser.script("return document.documentElement.scrollWidth") <= 390
    cut = "[...document.querySelectorAll('tbody td:nth-child(3)')]"
    assert set(browser.script(f"return {cut}.map(each => getComputedStyle(each).whiteSpace)")) == {"nowrap"}


def test_a_square_shows_its_rule(tmp_path: Path, browser: Browser) -> None:
    browser.open(MAKERS["rules"](tmp_path).as_uri())
    assert browser.script("return document.querySelectorAll('.map button').length") > 60
    browser.script("document.querySelector('[data-rule=\"C-JOIN-43\"]').click()")
    shown = browser.script("return document.getElementById('rule').textContent")
    assert shown.startswith("C-JOIN-43")
    assert "quiet window" in shown
    link = browser.script("return location.href")
    browser.open("about:blank")
    browser.open(link)
    assert browser.script("return document.getElementById('rule').textContent") == shown
    browser.script("const only = document.getElementById('only'); only.value = 'out'; only.onchange()")
    visible = "[...document.querySelectorAll('.map button')].filter(each => !each.hidden)"
    assert set(browser.script(f"return {visible}.map(each => each.className)")) <= {"out"}


def traces(folder: Path, count: int, length: int) -> Path:
    """Write a page of that many traces, each of that many steps."""
    steps = [
        StepWords(
            at, at * 500, Kind.REQUEST, f"client {at % 3}", "coordinator", f"#{at} Heartbeat g", "Heartbeat",
            (Answer(f"client {at % 3}", at, "Heartbeat NONE", "NONE", at % 100 == 0),),
        )
        for at in range(length)
    ]  # fmt: skip
    lanes = ("client 0", "client 1", "client 2", "coordinator")
    charts = (chart_html(Chart(f"trace {number}", (), lanes, steps, marked=length - 1)) for number in range(count))
    file = folder / "traces.html"
    file.write_text(page("traces", "".join(charts), MADE), encoding="utf-8")
    return file


def test_a_page_of_long_traces_stays_small(tmp_path: Path, browser: Browser) -> None:
    """Six traces of 5,000 steps. The page makes a chart when it comes near the view, and keeps the elements in view
    only, so their number does not grow with the steps."""
    file = traces(tmp_path, 6, 5_000)
    assert file.stat().st_size < 6 * 5_000 * 400
    browser.open(file.as_uri())
    nodes, made = (f"return document.querySelectorAll('{each}').length" for each in ("*", ".trace .bands"))
    assert browser.script(nodes) < 6_000
    assert browser.script(made) < 6
    browser.script("places.forEach((_, at) => make(at))")
    assert browser.script(made) == 6
    browser.script("document.querySelectorAll('.tools [name=routine]').forEach(each => each.click())")
    for top in (0, 50_000, 1e9):
        browser.script(f"for (const chart of charts) {{ chart.picture.scrollTop = {top}; chart.draw(); }}")
        assert browser.script(nodes) < 9_000
    assert browser.script("return document.querySelector('.bands [data-at=\"4999\"]') !== null")


def test_a_link_to_a_step_of_a_later_chart_shows_it(tmp_path: Path, browser: Browser) -> None:
    browser.open(traces(tmp_path, 6, 200).as_uri())
    browser.script("make(4).choose(100)")
    link = browser.script("return location.href")
    browser.open("about:blank")
    browser.open(link)
    browser.wait("charts[3]")
    assert browser.script("return charts[4].chosen") == 100
    assert -1 <= browser.script("return places[4].getBoundingClientRect().top") < 400


def test_rows_that_are_filtered_out_leave_no_gap(tmp_path: Path, browser: Browser) -> None:
    """A browser guesses the height of events that are far from the view; the page says how many rows are left."""
    browser.open(history(tmp_path, steps=1_500).as_uri())
    assert browser.script("return document.querySelectorAll('.part').length") > 3
    end = "document.querySelector('footer.made').getBoundingClientRect().top + scrollY"
    everything = browser.script(f"return {end}")
    browser.script(
        "const find = document.querySelector('.filter [name=find]');"
        "find.value = [...document.querySelectorAll('.part tr')].at(-1).lastChild.textContent;"
        "find.dispatchEvent(new Event('input'))"
    )
    rows = browser.script("return document.querySelectorAll('.part tr:not([style*=none])').length")
    assert 0 < rows < 30
    assert browser.script(f"return {end}") < everything - 5_000
    last = "[...document.querySelectorAll('.part tr:not([style*=none])')].at(-1)"
    browser.script(f"{last}.scrollIntoView()")
    assert 0 < browser.script(f"return {end} - scrollY - {last}.getBoundingClientRect().bottom") < 100
