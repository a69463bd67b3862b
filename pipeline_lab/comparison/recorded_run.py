"""A run as comparisons and reports see it: its diagnosis, and what it was told and ran on."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.errors import OptionsError, Unavailable
from pipeline_lab.options.run_options import read_options
from pipeline_lab.runs.record import RunRecord
from pipeline_lab.runs.store import RunFolder, read_record


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """One run, or one log that somebody brought.

    Attributes:
        name: What people call it.
        diagnosis: All analyses of it.
        id: Its folder's name; empty for a log that is no run.
        state, reason: How it ended, in the words of the run store; empty for a log.
        created_s: When it was launched, seconds since the epoch; None for a log.
        options: What it was told; None where that was not recorded.
        environment: What it ran on; empty where that was not recorded.
        source: The pipeline's Python source as it ran; None where that was not recorded.
        notes, tags: The user's words.
    """

    name: str
    diagnosis: Diagnosis
    id: str = ""
    state: str = ""
    reason: str = ""
    created_s: float | None = None
    options: dict[str, Any] | None = None
    environment: dict[str, Any] = field(default_factory=dict)
    source: str | None = None
    notes: str = ""
    tags: tuple[str, ...] = ()

    @property
    def batch_size(self) -> float | None:
        """Examples per step, the mean where buckets differ; None if neither the options nor the run say."""
        try:
            options = None if self.options is None else read_options(self.options)
        except OptionsError:
            return None
        if options is None or not options.is_assembled:
            return None
        if options.pipeline.find("bucket_by_sequence_length") is None:
            return options.pipeline.batch_size
        padding = self.diagnosis.padding
        return None if isinstance(padding, Unavailable) else padding.examples_per_step


def describe_run(folder: RunFolder, diagnosis: Diagnosis) -> RecordedRun:
    """Join a diagnosis with what the run's folder says about it.

    Raises:
        StoreError: The run's record is missing or damaged.
    """
    record: RunRecord = read_record(folder)
    source = folder.source.read_text(encoding="utf-8", errors="replace") if folder.source.is_file() else None
    return RecordedRun(
        name=record.name,
        diagnosis=diagnosis,
        id=record.id,
        state=record.status.state.value,
        reason=record.status.reason,
        created_s=record.status.created_s or None,
        options=record.options,
        environment=record.environment,
        source=source,
        notes=record.notes,
        tags=record.tags,
    )


def with_distinct_names(runs: Sequence[RecordedRun]) -> tuple[RecordedRun, ...]:
    """Return the runs with a number behind each name that occurs more than once."""
    names = [run.name for run in runs]
    taken, seen, renamed = set(names), dict.fromkeys(names, 0), []
    for run in runs:
        seen[run.name] += 1
        name = run.name
        if names.count(run.name) > 1:
            name = _free_name(run.name, seen[run.name], taken)
            taken.add(name)
        renamed.append(replace(run, name=name))
    return tuple(renamed)


def _free_name(name: str, number: int, taken: set[str]) -> str:
    while (candidate := f"{name} ({number})") in taken:
        number += 1
    return candidate
