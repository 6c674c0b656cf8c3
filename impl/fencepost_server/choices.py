"""Random ids in the form of Kafka's broker, as clients see them."""

from __future__ import annotations

import base64
from uuid import uuid4

from fencepost.aio import RandomChoices


class KafkaChoices(RandomChoices):
    """Choices whose member ids of consumer groups have Kafka's text form (G-WIRE-28). ``hyphens``: an id may contain
    hyphens, but does not begin with one; otherwise it has none."""

    def __init__(self, *, hyphens: bool) -> None:
        self._hyphens = hyphens

    def uuid(self) -> str:
        while True:
            text = base64.urlsafe_b64encode(uuid4().bytes).rstrip(b"=").decode()
            if not (text.startswith("-") if self._hyphens else "-" in text):
                return text
