"""Numbers in Prometheus' text format."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

#: upper bounds of the durations of requests, in seconds
BUCKETS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counts and durations of requests by API; ``total`` counts all."""

    def __init__(self) -> None:
        self._count: Counter[tuple[str, int]] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self.total = 0
        self._within: Counter[tuple[str, float]] = Counter()

    def observe(self, api: str, version: int, seconds: float) -> None:
        """Count an answered request."""
        self._count[api, version] += 1
        self._seconds[api] += seconds
        self.total += 1
        for bound in BUCKETS:
            if seconds <= bound:
                self._within[api, bound] += 1
                break

    def lines(self) -> Iterable[str]:
        """Yield the lines of requests and their durations."""
        yield from _head("fencepost_requests_total", "counter", "Answered requests, by API and version.")
        for (api, version), count in sorted(self._count.items()):
            yield _line("fencepost_requests_total", {"api": api, "version": str(version)}, count)
        name = "fencepost_request_seconds"
        yield from _head(name, "histogram", "From a complete request to its answer, by API.")
        for api in sorted(self._seconds):
            below = 0
            for bound in BUCKETS:
                below += self._within[api, bound]
                yield _line(f"{name}_bucket", {"api": api, "le": str(bound)}, below)
            total = sum(count for (one, _), count in self._count.items() if one == api)
            yield _line(f"{name}_bucket", {"api": api, "le": "+Inf"}, total)
            yield _line(f"{name}_sum", {"api": api}, round(self._seconds[api], 6))
            yield _line(f"{name}_count", {"api": api}, total)


def gauges(values: Mapping[str, tuple[str, float]]) -> Iterable[str]:
    """Yield the lines of single numbers, given by name with their help."""
    for name, (words, value) in values.items():
        yield from family(name, words, [({}, value)])


def by_label(name: str, words: str, label: str, values: Mapping[str, float]) -> Iterable[str]:
    """Yield the lines of a number with a value for each value of a label."""
    yield from family(name, words, [({label: each}, value) for each, value in sorted(values.items())])


def family(name: str, words: str, rows: Iterable[tuple[Mapping[str, str], float]]) -> Iterable[str]:
    """Yield the lines of a number, with a value for each row of labels. A name that ends in ``_total`` is a counter."""
    yield from _head(name, "counter" if name.endswith("_total") else "gauge", words)
    for labels, value in rows:
        yield _line(name, labels, value)


def _head(name: str, kind: str, words: str) -> Iterable[str]:
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    label_text = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{label_text}}} {value}" if label_text else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
