"""A race for a terminal: the answer, what speaks against it, then the arms."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipeline_lab.analysis.sampling.file_sampling import FileSampling
from pipeline_lab.comparison.race_arms import ArmResult, describe_alike
from pipeline_lab.comparison.race_result import Race
from pipeline_lab.errors import Unavailable
from pipeline_lab.units import format_duration, format_percent


def summarise_race(race: Race) -> RenderableType:
    """Put a race into words and a table."""
    return Group(*_lines(race))


def _lines(race: Race) -> Iterator[RenderableType]:
    for candidate in race.candidates:
        yield Text(candidate.sentence, style="bold")
        for warning in candidate.warnings:
            yield Text(f"! {warning}", style="yellow")
    if alike := describe_alike(race.options):
        yield Text(alike)
    yield Text(f"{race.kept_rounds} of {race.rounds} rounds counted{_load(race)}.{_sizes(race)}\n")
    table = Table(box=None, pad_edge=False)
    for title in ("", "step", "wait", "CPU s per 1000", "loss", "accuracy", "beyond share"):
        table.add_column(title, justify="left" if not title else "right")
    for arm in race.arms:
        table.add_row(Text(arm.name), *_numbers(arm))
    yield table


def _numbers(arm: ArmResult) -> Iterator[str]:
    loss, accuracy = arm.loss, arm.accuracy
    yield format_duration(arm.step_ns)
    yield format_duration(arm.wait_ns)
    yield "–" if isinstance(arm.cpu_s_per_1000, Unavailable) else f"{arm.cpu_s_per_1000:.3g}"
    yield "–" if isinstance(loss, Unavailable) else f"{loss:.3g}"
    yield "–" if isinstance(accuracy, Unavailable) else format_percent(100 * accuracy)
    yield _beyond_share(arm.sampling)


def _beyond_share(sampling: FileSampling | Unavailable) -> str:
    if isinstance(sampling, Unavailable) or sampling.total_variation is None:
        return "–"
    return format_percent(100 * sampling.total_variation)


def _sizes(race: Race) -> str:
    sizes = race.options.examples_per_step
    return "" if sizes is None else f" Times are compared per example; a step trains on {', '.join(map(str, sizes))}."


def _load(race: Race) -> str:
    load = race.other_load_percent
    return "" if load is None else f"; other programs used {format_percent(load)} of the processor meanwhile"
