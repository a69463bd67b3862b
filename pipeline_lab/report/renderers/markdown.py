"""The report for a pull request: GitHub-flavoured Markdown, with images where they can be drawn."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, assert_never

from pipeline_lab.report.content import Answer, AuthorNote, Block, CodeBlock, Content, Picture, Subject, Table, Text
from pipeline_lab.report.plain_text import plain, plain_line
from pipeline_lab.report.renderers.chart_images import draw_images, figures_of, image_support
from pipeline_lab.report.renderers.format import ReportFormat

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~!&])")
_AUTOLINK = re.compile(r"(?i)\b(https?|ftp|www)(?=[:.])|@")
MAX_CELL = 160
MAX_CHARACTERS = 60_000
"""A comment on GitHub holds 65,536."""

_SHORTER: tuple[tuple[str, Callable[[Block], bool]], ...] = (
    ("source texts", lambda block: not isinstance(block, CodeBlock)),
    ("source texts, options and environment", lambda block: not isinstance(block, CodeBlock) and not _is_folded(block)),
)
"""What to leave out, in turn, and what stays."""


class MarkdownReport(ReportFormat):
    """Text that a pull request shows, and images beside it."""

    name: ClassVar[str] = "markdown"
    title: ClassVar[str] = "Markdown"
    suffix: ClassVar[str] = ".md"
    media_type: ClassVar[str] = "text/markdown"

    def files(self, subject: Subject) -> dict[str, bytes]:
        content = subject.content()
        images = _draw_images(content, f"{subject.slug}-images")
        text = fit_markdown(content, {name: path for name, (path, _) in images.items()})
        return {
            self.file_name(subject): text.encode("utf-8"),
            **dict(images.values()),
        }


def fit_markdown(content: Content, images: dict[str, str]) -> str:
    """Write a report as Markdown that a pull request takes: sources, then folded tables, are left out if need be.

    Args:
        content: The report.
        images: Path of each chart's image by the chart's name; a chart without one is left out.
    """
    text = write_markdown(content, images)
    for left_out, keeps in _SHORTER:
        if len(text) <= MAX_CHARACTERS:
            break
        sections = tuple(replace(each, blocks=tuple(filter(keeps, each.blocks))) for each in content.sections)
        text = write_markdown(replace(content, sections=sections), images)
        text += f"\n_To fit a pull request, this text leaves out {left_out}; the HTML report has them._\n"
    return text


def write_markdown(content: Content, images: dict[str, str]) -> str:
    """Write a report as Markdown, whole."""
    about = [f"- {escape_line(name)}: {escape_line(value, 400)}" for name, value in content.about]
    parts = [
        f"# {escape_line(content.title)}",
        *_answer(content.answer),
        *(f"> **Note.** {escape_line(warning, 2000)}" for warning in content.warnings),
        "\n".join(about),
        *(part for note in content.notes for part in _note(note)),
        *(part for section in content.sections for part in _section(section.title, section.blocks, images)),
    ]
    missing = image_support()
    if not images and missing is not None:
        parts.append(f"_{escape_line(missing.reason, 2000)}_")
    return "\n\n".join(part for part in parts if part) + "\n"


def escape_line(text: str, longest: int = MAX_CELL) -> str:
    """Return one line of Markdown that shows a text as it is and links nowhere."""
    escaped = _SPECIAL.sub(r"\\\1", plain_line(text, longest))
    return _AUTOLINK.sub(lambda match: f"{match[0]}\u2060", escaped)


def _is_folded(block: Block) -> bool:
    return isinstance(block, Table) and block.folded


def _answer(answer: Answer) -> list[str]:
    label = f"**{escape_line(answer.label)}** ({escape_line(answer.certainty)})"
    sentences = [f"**{escape_line(sentence, 2000)}**" for sentence in answer.sentences]
    evidence = [f"| {escape_line(one.name)} | {escape_line(one.value)} |" for one in answer.evidence]
    suggestions = []
    for one in answer.suggestions:
        predicted = f" ({one.prediction})" if one.prediction else ""
        edit = f" ({escape_line(one.edit)})" if one.edit else ""
        words = " ".join(filter(None, (one.why, one.held_back)))
        suggestions.append(
            f"- **{escape_line(one.change.rstrip('.'), 400)}**{edit}{predicted}: {escape_line(words, 2000)}"
        )
    return [
        label,
        *sentences,
        "\n".join(["| Evidence | |", "|---|---|", *evidence]) if evidence else "",
        "\n".join(["What to try:", "", *suggestions]) if suggestions else "",
    ]


def _note(note: AuthorNote) -> list[str]:
    return [f"## {escape_line(note.about)}", _fenced(note.text, "text")]


def _section(title: str, blocks: tuple[Block, ...], images: dict[str, str]) -> list[str]:
    parts = [part for block in blocks for part in _block(block, images, above=title)]
    return [f"## {escape_line(title)}", *parts] if parts else []


def _block(block: Block, images: dict[str, str], *, above: str) -> list[str]:
    match block:
        case Text():
            sentence = escape_line(block.sentence, 2000)
            return [f"_{sentence}_" if block.missing else sentence]
        case Table() if block.folded:
            return _folded(block.title, _table(block))
        case Table():
            return [*([] if block.title == above else [f"### {escape_line(block.title)}"]), _table(block)]
        case CodeBlock():
            return _folded(block.title, _fenced(block.text, block.language))
        case Picture():
            shown = images.get(block.name)
            return [] if shown is None else [f"![{escape_line(block.description, 400)}]({shown})"]
        case _:
            assert_never(block)


def _table(table: Table) -> str:
    marks = ["---:" if index in table.numeric else "---" for index in range(len(table.columns))]
    lines = [_row(table.columns), f"|{'|'.join(marks)}|", *map(_row, table.rows)]
    note = f"\n\n{escape_line(table.note, 2000)}" if table.note else ""
    return "\n".join(lines) + note


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(escape_line(cell) for cell in cells)} |"


def _folded(title: str, body: str) -> list[str]:
    return [f"<details><summary>{escape_line(title)}</summary>", body, "</details>"]


def _fenced(text: str, language: str) -> str:
    """Put text between fences that it cannot close."""
    safe = plain(text).rstrip("\n")
    longest = max((len(run) for run in re.findall(r"`+", safe)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{safe}\n{fence}"


def _draw_images(content: Content, folder: str) -> dict[str, tuple[str, bytes]]:
    """Return path and bytes of each chart's image by the chart's name; none where images cannot be drawn."""
    if image_support() is not None:
        return {}
    images = draw_images(figures_of(content), "png")
    return {name: (f"{folder}/{name}.png", image) for name, image in images.items()}
