"""The page of ``fencepost watch`` while real clients join, rebalance, read and leave."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Thread
from typing import Any

import pytest
from driver import Browser

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.targets.broker import Broker
from fencepost_conformance.targets.jvm import jars
from fencepost_conformance.targets.jvm.releases import broker_artifacts

pytestmark = [pytest.mark.clients, pytest.mark.slow]

_COMMAND = (sys.executable, "-m", "fencepost_conformance.cli")
LONG = "a-topic-with-a-name-that-is-too-long-for-a-column"


@contextmanager
def command(*words: str) -> Iterator[str]:
    """Run a command that serves until it is ended; yield its first line."""
    process = subprocess.Popen([*_COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, f"ended with {process.wait()}"
        yield line
    finally:
        process.terminate()
        process.communicate(timeout=60)


@contextmanager
def serve() -> Iterator[str]:
    quick = ("--setting", "group.initial.rebalance.delay.ms=0")
    with command("serve", "--json", "--listen", "127.0.0.1:0", *quick) as line:
        yield json.loads(line)["listen"]


@contextmanager
def kafka() -> Iterator[str]:
    try:
        jars.fetch(*broker_artifacts(Broker().version))
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])
    with Broker("4.4.0", initial_rebalance_delay_ms=0) as broker:
        yield broker.bootstrap


class Clients:
    """Consumers that a thread polls."""

    def __init__(self, library: Any, bootstrap: str) -> None:
        self._library, self._bootstrap = library, bootstrap
        self._ended = Event()
        self._threads: dict[str, tuple[Thread, Event]] = {}

    def fill(self, count: int) -> None:
        """Create the topics, and produce records."""
        admin = importlib.import_module("confluent_kafka.admin")
        client = admin.AdminClient({"bootstrap.servers": self._bootstrap})
        for created in client.create_topics([admin.NewTopic("orders", 4), admin.NewTopic(LONG, 3)]).values():
            created.result(30)
        producer = self._library.Producer({"bootstrap.servers": self._bootstrap})
        for topic in ("orders", LONG):
            for _ in range(count):
                producer.produce(topic, b"a record")
        assert producer.flush(30) == 0

    def join(self, group: str, client: str, protocol: str) -> None:
        leave = Event()
        thread = Thread(target=self._consume, args=(group, client, protocol, leave))
        self._threads[client] = thread, leave
        thread.start()

    def leave(self, *clients: str) -> None:
        for client in clients or [*self._threads]:
            thread, leave = self._threads.pop(client)
            leave.set()
            thread.join()

    def _consume(self, group: str, client: str, protocol: str, leave: Event) -> None:
        consumer = self._library.Consumer(
            {
                "bootstrap.servers": self._bootstrap, "group.id": group, "client.id": client,
                "group.protocol": protocol, "auto.offset.reset": "earliest", "auto.commit.interval.ms": 200,
            }
        )  # fmt: skip
        consumer.subscribe(["orders", LONG])
        while not leave.is_set():
            consumer.poll(0.1)
        consumer.close()


def part(name: str) -> str:
    """Return the text of a group's part of the page, as a JavaScript expression."""
    return (
        f"(() => {{ const head = [...document.querySelectorAll('#groups h2')].find(e => e.textContent === '{name}');"
        "const texts = []; for (let e = head?.nextElementSibling; e && e.tagName !== 'H2'; e = e.nextElementSibling)"
        "texts.push(e.textContent); return texts.join(' | '); })()"
    )


#: cells with one word that is on several lines
BROKEN_WORDS = (
    "[...document.querySelectorAll('td.word')].filter(each => { const range = document.createRange();"
    "range.selectNodeContents(each); return range.getClientRects().length > 1; }).length"
)
REBALANCES = "document.getElementById('rebalances').textContent"


@pytest.mark.parametrize("start", [serve, pytest.param(kafka, marks=[pytest.mark.broker, pytest.mark.all])])
def test_the_page_follows_members_that_come_and_go(
    start: Callable[[], AbstractContextManager[str]], browser: Browser
) -> None:
    library = pytest.importorskip("confluent_kafka", reason="needs confluent-kafka: pip install -e '.[clients]'")
    with start() as bootstrap:
        clients = Clients(library, bootstrap)
        clients.fill(20)
        words = ("watch", "--bootstrap", bootstrap, "--status", "127.0.0.1:0", "--interval", "0.3")
        with command(*words) as line:
            url = line.split("http://")[1].split("/")[0]
            try:
                _follow(browser, f"http://{url}/", clients)
            finally:
                clients.leave()
        browser.wait("document.getElementById('lines').textContent.includes('The view is old')")
        browser.open("about:blank")
        assert all("ERR_CONNECTION_REFUSED" in each or "ERR_EMPTY" in each for each in browser.console())


def _follow(browser: Browser, url: str, clients: Clients) -> None:
    browser.open(url)
    browser.wait("document.getElementById('lines').textContent.includes('0 groups')")
    clients.join("shop", "checkout-1", "classic")
    clients.join("billing", "bill-1", "consumer")
    _wait(browser, f"{part('shop')}.includes('Stable') && {part('billing')}.includes('Stable')")
    _wait(browser, f"{part('shop')}.includes('checkout-1 /127.0.0.1') && {part('shop')}.includes('generation 1')")
    _wait(browser, f"{part('billing')}.includes('orders 0,1,2,3')")
    clients.join("shop", "checkout-2", "classic")
    clients.join("billing", "bill-2", "consumer")
    _wait(
        browser,
        f"{part('shop')}.includes('checkout-2 /') && /joined.*generation 2|checkout-2-.*joined/.test({REBALANCES})",
    )
    _wait(browser, f"{part('billing')}.includes('bill-2 /')")
    _wait(browser, f"/[1-9]\\d* commits.* lag 0/.test({part('shop')})")
    for scheme, width in (("light", 1280), ("dark", 390)):
        browser.emulate(scheme)
        browser.resize(width)
        assert browser.script("return document.documentElement.scrollWidth") <= width
        assert browser.problems() == [], scheme
        assert browser.script(f"return {BROKEN_WORDS}") == 0
    clients.leave("checkout-1")
    _wait(
        browser, f"!{part('shop')}.includes('checkout-1 /') && /checkout-1-.* left or was removed/.test({REBALANCES})"
    )
    assert browser.script(f"return {part('shop')}.includes('generation 3')")
    heads = browser.script("return [...document.querySelectorAll('#groups th')].map(each => each.textContent)")
    assert heads.count("target") == 1  # only of the consumer group
    assert browser.console() == []


def _wait(browser: Browser, condition: str) -> None:
    """Wait for a change in the cluster: up to three times as long as for one in the page."""
    for _ in range(2):
        try:
            return browser.wait(condition)
        except AssertionError:
            continue
    return browser.wait(condition)
