"""A prediction for a terminal: the step time first, then what it is the longest of."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pipeline_lab.advice.measured_run import Measured
from pipeline_lab.advice.option_changes import option_changes
from pipeline_lab.advice.what_if import Prediction
from pipeline_lab.errors import Unavailable
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.units import NS_PER_MS, format_bytes, format_duration, format_percent


def summarise_prediction(
    measured: Measured | Unavailable, options: RunOptions, prediction: Prediction | Unavailable
) -> RenderableType:
    """Put a prediction into words and numbers; one that cannot be made says why."""
    for each in (measured, prediction):
        if isinstance(each, Unavailable):
            return summarise_unpredicted(each)
    assert isinstance(measured, Measured)
    assert isinstance(prediction, Prediction)
    return Group(*_lines(measured, options, prediction))


def summarise_unpredicted(why: Unavailable) -> RenderableType:
    return Text(f"Nothing can be predicted. {why.reason}", style="yellow")


def _lines(measured: Measured, options: RunOptions, prediction: Prediction) -> Iterator[RenderableType]:
    changes = option_changes(measured.options, options)
    yield Text(_headline(measured, prediction, is_changed=bool(changes)), style="bold")
    for change in changes:
        yield Padding(Text(change, style="dim"), (0, 0, 0, 2), expand=False)
    table = Table(box=None, pad_edge=False)
    table.add_column("What a step may take as long as")
    table.add_column("time", justify="right")
    for number, term in enumerate(prediction.terms):
        style = "bold" if not number else ""
        table.add_row(Text(term.name, style=style), Text(_ms(term.ms), style=style))
    yield table
    memory = prediction.memory_bytes
    held = f"unknown ({memory.reason})" if isinstance(memory, Unavailable) else format_bytes(memory)
    yield Text(
        f"If input were free: {_ms(prediction.ceiling_ms)}. Buffers and caches: {held}. Threads: {prediction.threads}."
    )
    for note in prediction.notes:
        yield Text(f"! {note}", style="yellow")


def _headline(measured: Measured, prediction: Prediction, *, is_changed: bool) -> str:
    if not is_changed:
        return f"The step takes {_ms(measured.step_ms)}; change it with --set to see what that would bring."
    gain = prediction.gain_percent(measured)
    by = f"{format_percent(abs(gain))} {'less' if gain >= 0 else 'more'} time for each example"
    return f"Predicted: {_ms(prediction.step_ms)} a step instead of {_ms(measured.step_ms)}, {by}."


def _ms(value: float) -> str:
    return format_duration(value * NS_PER_MS)
