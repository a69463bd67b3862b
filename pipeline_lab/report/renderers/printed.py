"""The shortest form of a report, for ``print``: the answer, the stages, the findings, on one screen."""

from itertools import chain

from rich.console import Console
from rich.text import Text

from pipeline_lab.report.content import Content, Findings, Table
from pipeline_lab.report.plain_text import plain_line
from pipeline_lab.report.renderers.terminal import draw_strip

MAX_ROWS = 12
MAX_FINDINGS = 4
MAX_SENTENCE = 400
LONGEST = {"Written": 30}
"""Characters of a cell, by the table's column; others are kept whole."""
STAGES = "Stages that ran"


def write_short(content: Content, *, colored: bool = False) -> str:
    """Return some thirty lines of text at most; ``colored`` for a terminal, where standard output is one."""
    answer, tables = content.answer, _tables(content)
    lines = [plain_line(sentence, MAX_SENTENCE) for sentence in answer.sentences]
    lines += [f"{answer.label}, {answer.certainty}"]
    strip = draw_strip(answer)
    lines += map(_color, strip) if colored else [line.plain for line in strip]
    if answer.suggestions:
        first = answer.suggestions[0]
        predicted = f" ({first.prediction})" if first.prediction else ""
        lines += [f"Try first: {plain_line(first.change.rstrip('.'), MAX_SENTENCE)}{predicted}."]
    if STAGES in tables:
        lines += ["", *_write_table(tables[STAGES])]
    for findings in (table for table in tables.values() if isinstance(table, Findings)):
        lines += ["", *_write_findings(findings.sentences)]
    return "\n".join(lines)


def _color(line: Text) -> str:
    """Return a line with the colors that standard output can show; plain where it is no terminal."""
    console = Console(force_jupyter=False)
    with console.capture() as shown:
        console.print(line, soft_wrap=True, end="")
    return shown.get()


def _tables(content: Content) -> dict[str, Table]:
    blocks = chain.from_iterable(section.blocks for section in content.sections)
    return {block.title: block for block in blocks if isinstance(block, Table)}


def _write_table(table: Table) -> list[str]:
    kept = [table.columns, *table.rows[:MAX_ROWS]]
    cells = [[_cell(text, table.columns[index]) for index, text in enumerate(row)] for row in kept]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(
            text.rjust(width) if index in table.numeric else text.ljust(width)
            for index, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    left_out = len(table.rows) - MAX_ROWS
    return [*lines, *([f"… and {left_out} more"] if left_out > 0 else [])]


def _cell(text: str, column: str) -> str:
    indent = len(text) - len(text.lstrip("\u2003"))
    return "  " * indent + plain_line(text, LONGEST.get(column, MAX_SENTENCE))


def _write_findings(sentences: tuple[str, ...]) -> list[str]:
    lines = [f"! {plain_line(sentence, MAX_SENTENCE)}" for sentence in sentences[:MAX_FINDINGS]]
    left_out = len(sentences) - MAX_FINDINGS
    return [*lines, *([f"… and {left_out} more findings"] if left_out > 0 else [])]
