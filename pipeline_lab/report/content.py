"""What a report says, before any format: an answer, sections, blocks. Every format for people renders this."""

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from pipeline_lab.analysis.causes import StepPart
from pipeline_lab.analysis.verdict.verdict import Evidence, Suggestion
from pipeline_lab.data_classes import dataclass

if TYPE_CHECKING:  # what only lists numbers, such as the terminal, draws nothing
    import pyarrow as pa

    from pipeline_lab.figures.chart_list import Chart, Charted, Drawing
    from pipeline_lab.figures.theme import Mode


@dataclass(frozen=True)
class Text:
    """One paragraph; ``missing`` marks a sentence that says why something was not measured."""

    sentence: str
    missing: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of text.

    Attributes:
        title: What it lists.
        columns: Headings.
        rows: Cells, as many as headings.
        numeric: Indices of columns that hold quantities.
        note: What was left out, or empty.
        folded: May start folded where the format can fold.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[int, ...] = ()
    note: str = ""
    folded: bool = False


@dataclass(frozen=True)
class Findings(Table):
    """What else is worth knowing: kind, sentence and evidence; short forms show the sentences alone."""

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(sentence for _, sentence, _ in self.rows)


@dataclass(frozen=True)
class CodeBlock:
    """Source text, kept as it is."""

    title: str
    text: str
    language: str
    folded: bool = False


@dataclass(frozen=True)
class Picture:
    """One chart.

    Attributes:
        name: Used in links and file names.
        description: What one sees.
        draw: Draws it in a mode, or says why there is nothing to draw.
        wide: Needs the whole width of a page.
    """

    name: str
    description: str
    draw: "Callable[[Mode], Drawing]"
    wide: bool = False


def picture_of(chart: "Chart[Charted]", subject: "Charted") -> Picture:
    """Return a chart of the catalog as a picture of its subject."""
    return Picture(chart.name, chart.description, partial(chart.draw, subject), chart.wide)


Block: TypeAlias = Text | Table | CodeBlock | Picture


@dataclass(frozen=True)
class Section:
    """Blocks under one heading; short forms (the terminal, notebooks) show some of the sections only."""

    title: str
    blocks: tuple[Block, ...]
    in_short: bool = False


@dataclass(frozen=True)
class AuthorNote:
    """An author's words, kept as they are."""

    about: str
    text: str


@dataclass(frozen=True)
class Answer:
    """What the reader came for.

    Attributes:
        label: One or two words, such as ``input bound``.
        tone: ``good``, ``bad`` or ``neutral``; formats may color it.
        sentences: The answer; the first is the most important one.
        certainty: How sure it is, as a few words.
        evidence: The numbers behind it.
        suggestions: What to try next.
        step_parts_ns: How long each part of a typical step takes; empty where no step is known.
        parts_basis: Of which steps these are the mean.
        predicted: The first suggestion, if its gain is predicted.
    """

    label: str
    tone: str
    sentences: tuple[str, ...]
    certainty: str
    evidence: tuple[Evidence, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    step_parts_ns: Mapping[StepPart, float] = field(default_factory=dict)
    parts_basis: str = ""
    predicted: Suggestion | None = None


@dataclass(frozen=True)
class Content:
    """A whole report.

    Attributes:
        title: Of the report.
        about: What was reported on: name and value pairs under the title.
        answer: Comes first.
        warnings: What a reader must know before the numbers.
        notes: The author's words.
        sections: In reading order.
    """

    title: str
    about: tuple[tuple[str, str], ...]
    answer: Answer
    warnings: tuple[str, ...]
    notes: tuple[AuthorNote, ...]
    sections: tuple[Section, ...]


class Subject(Protocol):
    """A run, a comparison, a race."""

    @property
    def slug(self) -> str:
        """A file name's worth of its title."""
        ...

    def content(self) -> Content:
        """Return what formats for people show."""
        ...

    def document(self) -> dict[str, Any]:
        """Return its JSON document."""
        ...

    def tables(self) -> "dict[str, pa.Table]":
        """Return its tables by name, whole."""
        ...
