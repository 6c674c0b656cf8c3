"""What Kafka's broker draws, as far as clients see it."""

from __future__ import annotations

import base64
from uuid import uuid4

from fencepost.aio import RandomChoices


class KafkaChoices(RandomChoices):
    """Ids of members of consumer groups in Kafka's own text form (G-WIRE-28): ``hyphens`` if there may be some."""

    def __init__(self, *, hyphens: bool) -> None:
        self._hyphens = hyphens

    def uuid(self) -> str:
        while True:
            text = base64.urlsafe_b64encode(uuid4().bytes).rstrip(b"=").decode()
            if not (text.startswith("-") if self._hyphens else "-" in text):
                return text
