"""The anatomy of a step as text: one strip to scale, below it the step with the first suggestion carried out."""

from rich.text import Text

from pipeline_lab.analysis.causes import StepPart
from pipeline_lab.errors import Unavailable
from pipeline_lab.report.content import Answer
from pipeline_lab.units import format_duration, format_percent

WIDTH = 64
FILLS = "█▒░▓"
"""Parts beside each other differ where there are no colors, too."""
PREDICTED = "▔"


def draw_strip(answer: Answer) -> list[Text]:
    """Return the lines of the strip; none where no step is known."""
    parts = answer.step_parts_ns
    step_ns = sum(parts.values())
    if not step_ns:
        return []
    strip, legend = Text(no_wrap=True), Text()
    for number, (part, length_ns, cells) in enumerate(_fit(dict(parts))):
        strip.append(FILLS[number % len(FILLS)] * cells, part.light)
        legend.append("  " if number else "").append(FILLS[number % len(FILLS)], part.light)
        legend.append(f" {part.label} {format_duration(length_ns)} ({format_percent(100 * length_ns / step_ns)})")
    lines = [strip.append(f" {format_duration(step_ns)}"), legend]
    better = answer.predicted
    if better is not None and not isinstance(better.predicted_gain_percent, Unavailable):
        left = 1 - better.predicted_gain_percent / 100
        after = Text(PREDICTED * max(1, round(WIDTH * left)), "green", no_wrap=True)
        lines.insert(1, after.append(f" {format_duration(step_ns * left)} predicted"))
    if answer.parts_basis:
        lines.append(Text(answer.parts_basis, "dim"))
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
