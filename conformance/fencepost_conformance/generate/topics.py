"""The topics of a trace's cluster: created, grown, deleted, created again, moved to other racks."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from fencepost.protocol.events import Topic

from .consumer_plan import RACKS, TOPICS


class Topics:
    """The current topics by name, and the version of the image that holds them."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._racks = rng.random() < 0.5
        self.version = rng.choice((0, 1, 100))
        self.now: dict[str, Topic] = {}
        for name in TOPICS:
            if rng.random() < 0.6:
                self._create(name)

    def image(self) -> tuple[Topic, ...]:
        """Return all topics by name."""
        return tuple(self.now[name] for name in sorted(self.now))

    def change(self) -> None:
        """Make the next image: one or two topics change, or only the version does."""
        rng = self._rng
        self.version += rng.choice((1, 1, 5))
        for _ in range(rng.choice((0, 1, 1, 1, 2))):
            name = rng.choice(TOPICS)
            topic = self.now.get(name)
            draw = rng.random()
            if topic is None or draw < 0.15:  # new, or deleted and recreated with another id (M-META-06)
                self._create(name)
            elif draw < 0.45:
                del self.now[name]
            elif draw < 0.8:
                more = topic.partitions + rng.choice((1, 1, 2))
                racks = topic.racks + tuple(self._draw_racks() for _ in range(more - len(topic.racks)))
                self.now[name] = replace(topic, partitions=more, racks=racks if topic.racks else ())
            else:
                self.now[name] = replace(topic, racks=tuple(self._draw_racks() for _ in range(topic.partitions)))

    def _create(self, name: str) -> None:
        rng = self._rng
        partitions = rng.choice((1, 1, 2, 3, 3, 4, 6))
        racks = tuple(self._draw_racks() for _ in range(partitions)) if self._racks else ()
        self.now[name] = Topic(name, rng.randbytes(16), partitions, racks)

    def _draw_racks(self) -> frozenset[str]:
        return frozenset(rack for rack in RACKS if self._rng.random() < 0.5)
