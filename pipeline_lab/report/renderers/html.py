"""The report for everybody: one HTML file that opens offline, in light and dark, on a phone and on paper.

The page carries its style, its charts and plotly.js. Its content security policy names the scripts by their hashes and
forbids everything else, so that it asks no server for anything and runs nothing that a name or a note brought along.
Charts are held as JSON: once in light colors, and what to change for the dark ones. Names that users chose reach them as
labels, and plotly.js reads a little HTML in labels: everything that looks like a tag, but is none of the few that the lab's
own titles use, is turned into text here, so that no chart has to think of it.
"""

import base64
import hashlib
import html
import json
import re
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any, ClassVar

import jinja2
import plotly.graph_objects as go
import plotly.io as pio
from markupsafe import Markup

from pipeline_lab.analysis.metrics.metric_rows import headline
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.report.content import Block, CodeBlock, Content, Picture, Subject, Table, Text
from pipeline_lab.report.plain_text import plain, plain_line
from pipeline_lab.report.renderers.format import ReportFormat
from pipeline_lab.units import format_duration, format_percent, keep_together

_OWN_TAGS = re.compile(r'<(?!(?:br|/?b|/?i|/?sup|/?sub|extra|/extra|/span|span style="color:#[0-9a-f]{6}")>)')
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


MAX_CELL = 400
DEFAULT_HEIGHT = 340
PLOTLY = "vendor/plotly-cartesian.min.js"


class HtmlReport(ReportFormat):
    """One self-contained page."""

    name: ClassVar[str] = "html"
    title: ClassVar[str] = "HTML page"
    suffix: ClassVar[str] = ".html"
    media_type: ClassVar[str] = "text/html"

    def files(self, subject: Subject) -> dict[str, bytes]:
        return {self.file_name(subject): write_page(subject.content()).encode("utf-8")}


@dataclass(frozen=True)
class PageChart:
    """A picture as the page holds it.

    Attributes:
        name: Its id on the page.
        title, description: For people who cannot see it, and for the file it is saved to.
        wide: Takes the whole width of the page.
        height: Pixels to keep free for it.
        data: The figure in light colors and the patch to dark ones, as JSON.
    """

    name: str
    title: str
    description: str
    wide: bool
    height: int
    data: str


def write_page(content: Content) -> str:
    """Write a report as one HTML page."""
    scripts = (_resource(PLOTLY), _resource("templates/report.js"))
    return render_template(
        "report.html",
        content=content,
        definitions=headline(),
        style=_resource("templates/report.css"),
        scripts=scripts,
        script_hashes=" ".join(f"'sha256-{_sha256(text)}'" for text in scripts),
    )


def render_template(name: str, **values: Any) -> str:
    """Fill one of the report room's templates; everything is escaped unless the template says otherwise."""
    text: str = _templates().get_template(name).render(**values)
    return text


def draw(picture: Picture) -> PageChart | Text:
    """Draw a picture in both modes, or say why there is none."""
    light, dark = picture.draw("light"), picture.draw("dark")
    if isinstance(light, Unavailable) or isinstance(dark, Unavailable):
        return Text(light.reason if isinstance(light, Unavailable) else picture.description, missing=True)
    figure = figure_json(light)
    return PageChart(
        picture.name,
        plain_line(chart_title(light)),
        picture.description,
        picture.wide,
        int(light.layout.height or DEFAULT_HEIGHT),
        script_json({"figure": figure, "dark": patch_between(figure, figure_json(dark))}),
    )


def arrange(blocks: tuple[Block, ...]) -> list[list[PageChart] | Block]:
    """Draw a section's pictures, and put neighboring ones into one grid of two columns.

    A reason why pictures are missing is given once, however many lack the same thing.
    """
    arranged: list[list[PageChart] | Block] = []
    reasons: set[str] = set()
    for block in blocks:
        shown = draw(block) if isinstance(block, Picture) else block
        if isinstance(shown, Text) and shown.missing:
            if shown.sentence in reasons:
                continue
            reasons.add(shown.sentence)
        if not isinstance(shown, PageChart):
            arranged.append(shown)
        elif arranged and isinstance(arranged[-1], list):
            arranged[-1].append(shown)
        else:
            arranged.append([shown])
    return [_without_lone_halves(each) if isinstance(each, list) else each for each in arranged]


def _without_lone_halves(charts: list[PageChart]) -> list[PageChart]:
    """Widen each chart that would stand alone in its row."""
    rows = [list(run) for _, run in groupby(charts, lambda chart: chart.wide)]
    for row in rows:
        if len(row) % 2:
            row[-1] = replace(row[-1], wide=True)
    return [chart for row in rows for chart in row]


def show_text(text: str) -> Markup:
    """Return text as HTML that keeps its own direction and its line breaks, and numbers with their units."""
    return Markup('<bdi dir="auto">{}</bdi>').format(keep_together(plain(text)))


def show_source(text: str) -> Markup:
    """Return code as HTML with the characters that it has, for people who copy it."""
    return Markup('<bdi dir="auto">{}</bdi>').format(plain(text))


def show_cell(text: str) -> Markup:
    """Return one line of text as HTML, cut if it is very long."""
    return Markup('<bdi dir="auto">{}</bdi>').format(keep_together(plain_line(text, MAX_CELL)))


def code_lines(code: CodeBlock) -> list[tuple[str, str]]:
    """Return the lines of source text, each with what it is in a diff: added, removed, place or same."""
    kinds = {"+": "added", "-": "removed", "@": "place"} if code.language == "diff" else {}
    return [(kinds.get(line[:1], "same"), line) for line in plain(code.text).rstrip("\n").split("\n")]


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _resource(f"templates/{name}")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        text=show_text,
        cell=show_cell,
        source=show_source,
        line=plain_line,
        lines=code_lines,
        percent=format_percent,
        arranged=arrange,
        duration=format_duration,
    )
    environment.tests.update(
        text_block=_is(Text), table_block=_is(Table), code_block=_is(CodeBlock), chart_grid=_is(list)
    )
    return environment


def _is(kind: type) -> Any:
    return lambda block: isinstance(block, kind)


@cache
def _resource(name: str) -> str:
    return (files("pipeline_lab.report") / name).read_text(encoding="utf-8")


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()
