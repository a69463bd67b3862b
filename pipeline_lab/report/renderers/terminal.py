"""A report for a terminal: the answer, what speaks for it, what to try, then the tables that short forms show."""

from collections.abc import Iterator
from itertools import chain
from typing import assert_never

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text as Styled

from pipeline_lab.analysis.causes import StepPart
from pipeline_lab.analysis.verdict.verdict import Suggestion
from pipeline_lab.errors import Unavailable
from pipeline_lab.report.content import Answer, Block, CodeBlock, Content, Findings, Picture, Section, Table, Text
from pipeline_lab.units import format_duration, format_percent

TO_BE_PASTED = "shell"
"""Commands are shown; sources and options are in the reports."""

WIDTH = 64
FILLS = "█▒░▓"
"""Parts beside each other differ where there are no colors, too."""
PREDICTED = "▔"


def render_terminal(content: Content, *more: Section) -> RenderableType:
    """Put a report into text and tables.

    Args:
        content: The report; of its sections those are shown that short forms show.
        more: Sections after them.
    """
    sections = [each for each in content.sections if each.in_short]
    return Group(*_answer(content), *chain.from_iterable(map(_section, _gather([*sections, *more]))))


def _answer(content: Content) -> Iterator[RenderableType]:
    answer = content.answer
    for sentence in answer.sentences:
        yield Styled(sentence, style="bold")
    yield Styled(" · ".join(filter(None, (answer.label, answer.certainty))), style="dim")
    yield from draw_strip(answer)
    yield from _reasons(answer)
    for warning in content.warnings:
        yield Styled(f"! {warning}", style="yellow")
    if content.about:
        yield Styled("\n" + " · ".join(f"{name}: {value}" for name, value in content.about), style="dim")


def _reasons(answer: Answer) -> Iterator[RenderableType]:
    for evidence in answer.evidence:
        yield Padding(Styled(f"{evidence.name}: {evidence.value}"), (0, 0, 0, 2))
    for suggestion in answer.suggestions:
        yield from _suggestion(suggestion)


def _suggestion(suggestion: Suggestion) -> Iterator[RenderableType]:
    predicted = f" ({suggestion.prediction})" if suggestion.prediction else ""
    yield Padding(Styled(f"→ {suggestion.change}{predicted}", style="green"), (0, 0, 0, 2), expand=False)
    if suggestion.edit:
        yield Padding(Styled(suggestion.edit, style="cyan"), (0, 0, 0, 4), expand=False)
    yield Padding(Styled(suggestion.reasons), (0, 0, 0, 4), expand=False)
    if suggestion.command:
        yield _command(f"    {suggestion.command}")


def _gather(sections: list[Section]) -> list[Section]:
    """Join tables of one title and the same columns, such as the numbers of each topic, where the first of them stands."""
    rows: dict[tuple[str, tuple[str, ...]], list[tuple[str, ...]]] = {}
    for block in chain.from_iterable(each.blocks for each in sections):
        if isinstance(block, Table):
            rows.setdefault((block.title, block.columns), []).extend(block.rows)
    gathered = []
    for section in sections:
        blocks: list[Block] = []
        for block in filter(_is_shown, section.blocks):
            if not isinstance(block, Table):
                blocks.append(block)
            elif whole := rows.pop((block.title, block.columns), None):
                kind = type(block)
                blocks.append(kind(block.title, block.columns, tuple(whole), block.numeric, block.note))
        gathered.append(Section(section.title, tuple(blocks)))
    return [section for section in gathered if section.blocks]


def _is_shown(block: Block) -> bool:
    match block:
        case Text():
            return True
        case Table():
            return not block.folded
        case CodeBlock():
            return block.language == TO_BE_PASTED
        case Picture():
            return False
        case _:
            assert_never(block)


def _section(section: Section) -> Iterator[RenderableType]:
    yield Styled("")
    if not isinstance(section.blocks[0], Findings):
        yield Styled(section.title, style="bold")
    for block in section.blocks:
        yield from _block(block, above=section.title)


def _block(block: Block, *, above: str) -> Iterator[RenderableType]:
    match block:
        case Findings():
            for sentence in block.sentences:
                yield Styled(f"! {sentence}", style="yellow")
        case Table():
            yield from _table(block, above)
        case Text():
            yield Styled(block.sentence, style="dim" if block.missing else "")
        case CodeBlock():
            yield Styled(block.title)
            yield _command(f"  {block.text}")
        case Picture():
            pass
        case _:
            assert_never(block)


def _table(table: Table, above: str) -> Iterator[RenderableType]:
    """Show a table; one of names and values needs no headings."""
    if table.title != above:
        yield Styled(f"\n{table.title}", style="bold")
    if table.columns[-1] == "Value":
        grid = Grid.grid(padding=(0, 2))
    else:
        grid = Grid(box=None, pad_edge=False, padding=(0, 2))
        for index, heading in enumerate(table.columns):
            grid.add_column(Styled(heading), justify="right" if index in table.numeric else "left", overflow="fold")
    for row in table.rows:
        grid.add_row(*map(Styled, row))
    yield grid
    if table.note:
        yield Styled(table.note, style="dim")


def _command(text: str) -> Styled:
    """Return a command that is to be pasted: no breaks."""
    return Styled(text, no_wrap=True, overflow="ignore")


def draw_strip(answer: Answer) -> list[Styled]:
    """Return the lines of the strip; none where no step is known."""
    parts = answer.step_parts_ns
    step_ns = sum(parts.values())
    if not step_ns:
        return []
    strip, legend = Styled(no_wrap=True), Styled()
    for number, (part, length_ns, cells) in enumerate(_fit(dict(parts))):
        strip.append(FILLS[number % len(FILLS)] * cells, part.light)
        legend.append("  " if number else "").append(FILLS[number % len(FILLS)], part.light)
        legend.append(f" {part.label} {format_duration(length_ns)} ({format_percent(100 * length_ns / step_ns)})")
    lines = [strip.append(f" {format_duration(step_ns)}"), legend]
    better = answer.predicted
    if better is not None and not isinstance(better.predicted_gain_percent, Unavailable):
        gain = better.predicted_gain_percent
        after = Styled(PREDICTED * max(1, round(WIDTH * (1 - gain / 100))), "green", no_wrap=True)
        lines.insert(1, after.append(f" {format_percent(gain)} shorter, predicted"))
    if answer.parts_basis:
        lines.append(Styled(answer.parts_basis, "dim"))
    return lines


def _fit(parts_ns: dict[StepPart, float]) -> list[tuple[StepPart, float, int]]:
    """Return each part with the cells that it fills; together they fill the strip, and what is too short for one has none."""
    step_ns, end_ns, filled = sum(parts_ns.values()), 0.0, 0
    fitted = []
    for part, length_ns in parts_ns.items():
        end_ns += length_ns
        cells = round(WIDTH * end_ns / step_ns) - filled
        filled += cells
        if cells:
            fitted.append((part, length_ns, cells))
    return fitted
