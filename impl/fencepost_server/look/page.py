"""A self-contained HTML page: one file with its style, its script, and what made it."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Final

from fencepost_server.look.made import Made


def _static(name: str) -> str:
    return (Path(__file__).parent / "static" / name).read_text(encoding="utf-8")


#: the style of a picture, alone or in a page
PICTURE: Final = _static("picture.css")
#: the style of a page
STYLE: Final = PICTURE + _static("page.css")
#: what every page does with its charts
SCRIPT: Final = _static("page.js")


def page(title: str, body: str, made: Made | None, *, style: str = "", script: str = SCRIPT, icon: bool = False) -> str:
    """Return a whole page. ``body``: HTML below the heading. ``style``: rules of this page alone. ``script``: runs at
    the end. ``icon``: keep a browser from asking the page's server for one."""
    head = '<link rel="icon" href="data:,">' if icon else ""
    foot = "" if made is None else made.html()
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">{head}'
        f"<style>{STYLE}{style}</style></head><body>\n<main><h1>{escape(title)}</h1>\n{body}\n</main>{foot}\n<script>{script}</script></body></html>\n"
    )
