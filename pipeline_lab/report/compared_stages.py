"""The table of stages side by side."""

from collections.abc import Sequence

from pipeline_lab.comparison.recorded_run import RecordedRun
from pipeline_lab.comparison.stages import ComparedStages, StageRow, StageUse
from pipeline_lab.report.content import Table
from pipeline_lab.units import format_duration

_NOTE = "Thread time that one batch takes of the stage. –: the pipeline has no such stage."


def stage_table(stages: ComparedStages, runs: Sequence[RecordedRun]) -> Table:
    """Write all that is known of a pair of pipelines, and the thread times of more."""
    note = " ".join((_NOTE, *stages.notes))
    if len(runs) > 2:
        rows = tuple(
            (run.name, *(_duration(stages.work_ns(row, number) if row.uses[number] else None) for row in stages.rows))
            for number, run in enumerate(runs)
        )
        columns = ("Run", *(row.name for row in stages.rows))
        return Table("Thread time of the stages", columns, rows, tuple(range(1, len(columns))), note)
    names = [run.name for run in runs]
    columns = ("Stage", *(f"Ran in {name}" for name in names), *names, "Difference", "Parallel calls", "Buffered")
    return Table("Stages", columns, tuple(_pair(stages, row) for row in stages.rows), (3, 4, 5, 6, 7), note)


def _pair(stages: ComparedStages, row: StageRow) -> tuple[str, ...]:
    return (
        row.name,
        *(" + ".join(use.ran) if use else "–" for use in row.uses),
        *(_duration(use.work_ns if use else None) for use in row.uses),
        _difference(stages.difference_ns(row, 1)),
        _change([_number(use.parallelism) if use else "–" for use in row.uses]),
        _change([_buffer(use) for use in row.uses]),
    )


def _duration(ns: float | None) -> str:
    return "–" if ns is None else format_duration(ns)


def _difference(ns: float | None) -> str:
    if not ns:
        return "–" if ns is None else "±0"
    return f"{'+' if ns > 0 else '−'}{format_duration(abs(ns))}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _buffer(use: StageUse | None) -> str:
    if use is None or use.buffered_elements is None:
        return "–"
    return f"{use.buffered_elements:.4g}" + ("" if use.buffer_limit is None else f" of {use.buffer_limit:.4g}")


def _change(values: Sequence[str]) -> str:
    return "–" if set(values) == {"–"} else " → ".join(values)
