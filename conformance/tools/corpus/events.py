"""Messages of a member to its scenario: one JSON object a line on standard output."""

from __future__ import annotations

import json
from typing import Any


def emit(event: str, **fields: Any) -> None:
    print(json.dumps({"event": event, **fields}), flush=True)
