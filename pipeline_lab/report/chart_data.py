"""Figures as JSON for the page: once in light colours, and what to change for the dark ones.

Names that users chose reach charts as labels, and plotly.js reads a little HTML in labels. Everything that looks like
a tag, but is none of the few that the lab's own titles use, is turned into text here, so that no chart has to think
of it.
"""

import html
import json
import re
from typing import Any

import plotly.graph_objects as go
import plotly.io as pio

from pipeline_lab.report.plain_text import plain

_OWN_TAGS = re.compile(r"<(?!(?:br|/?b|/?i|/?sup|/?sub|extra|/extra)>)")
_PLAIN_KEYS = frozenset({"dtype", "bdata", "shape", "color", "type"})

Patch = list[tuple[list[str | int], Any]]


def figure_json(figure: go.Figure) -> dict[str, Any]:
    """Return a figure's data and layout as plain JSON values; texts cannot carry links or broken characters."""
    document = json.loads(pio.to_json(figure, validate=False, engine="json"))
    return {"data": _clean(document["data"]), "layout": _clean(document["layout"])}


def patch_between(old: Any, new: Any) -> Patch:
    """Return the places where two documents of the same shape differ, each with its new value."""
    found: Patch = []
    _collect(old, new, [], found)
    return found


def script_json(value: Any) -> str:
    """Write a value as JSON that is safe inside a script element, in one canonical spelling."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def chart_title(figure: go.Figure) -> str:
    """Return a chart's title as plain text."""
    return html.unescape(re.sub(r"<[^>]*>", " ", str(figure.layout.title.text or "")))


def _clean(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _clean(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_clean(inner, key) for inner in value]
    if isinstance(value, str) and key not in _PLAIN_KEYS:
        return _OWN_TAGS.sub("&lt;", plain(value))
    return value


def _collect(old: Any, new: Any, path: list[str | int], found: Patch) -> None:
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        for key in sorted(old):
            _collect(old[key], new[key], [*path, key], found)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            _collect(one, other, [*path, index], found)
    elif old != new:
        found.append((path, new))
