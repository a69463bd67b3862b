"""The stages of several pipelines side by side.

Pipelines differ in which stages they have, in their order, and in what TensorFlow made of them, so stages are matched by
the calls that they stand for: ``map(parse)``, ``batch``, counted from the consumer where a call occurs more than once. Calls
that some run fused are one row in all runs, because their time cannot be divided there.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from pipeline_lab.analysis.input.pipeline_stages import PipelineStage, join_stages
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.tf_data.written_words import AUTOTUNE_WORD, ROOTS, kind_of, method_of
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable

OTHER_ORDER = "Some stages come in another order than in the baseline; they stand in the baseline's."
FROM_MODEL, FROM_TRACE = "tf.data's own model", "the trace"


@dataclass(frozen=True)
class StageUse:
    """What one run's pipeline did for one row.

    Attributes:
        ran: Kinds of the iterators that ran, such as ``ParallelMapV2``.
        work_ns: Thread time that one batch took of them.
        parallelism: Mean number of parallel calls; of the outermost that has one.
        buffered_elements, buffer_limit: Mean content of the buffer and what it may hold; likewise.
        place: In its own pipeline, the source being 0.
    """

    ran: tuple[str, ...]
    work_ns: float
    parallelism: float | None
    buffered_elements: float | None
    buffer_limit: float | None
    place: int


@dataclass(frozen=True)
class StageRow:
    """One row: a call, or calls that some run fused.

    Attributes:
        name: ``map(parse)``, ``shuffle + repeat``.
        uses: One per run; None where the pipeline has no such stage, or nothing is known of it.
    """

    name: str
    uses: tuple[StageUse | None, ...]


@dataclass(frozen=True)
class ComparedStages:
    """The stages of all runs.

    Attributes:
        rows: In the order of the code, the source first; of stages that only some runs have, beside their neighbors there.
        sources: For each run where its thread times are from (:data:`FROM_MODEL`, :data:`FROM_TRACE`), or why it has none.
    """

    rows: tuple[StageRow, ...]
    sources: tuple[str | Unavailable, ...]

    def work_ns(self, row: StageRow, run: int) -> float | None:
        """Return the thread time of one batch: 0 without such a stage, None where the run's stages are not known."""
        if isinstance(self.sources[run], Unavailable):
            return None
        use = row.uses[run]
        return use.work_ns if use else 0.0

    def difference_ns(self, row: StageRow, run: int) -> float | None:
        """Return this run's thread time minus the baseline's; None if either is not known."""
        baseline, own = self.work_ns(row, 0), self.work_ns(row, run)
        return None if baseline is None or own is None else own - baseline

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know: runs without stages, and thread times that were taken in different ways."""
        missing = sum(isinstance(source, Unavailable) for source in self.sources)
        differ = len({source for source in self.sources if isinstance(source, str)}) > 1
        return (
            *((f"Not measured in {missing} of {len(self.sources)} runs.",) if missing else ()),
            *((f"Some times are from {FROM_MODEL}, some from {FROM_TRACE}.",) if differ else ()),
            *((OTHER_ORDER,) if any(map(self._has_other_order, range(1, len(self.sources)))) else ()),
        )

    def _has_other_order(self, run: int) -> bool:
        """Say whether stages that a run shares with the baseline come in another order there."""
        shared = [(row.uses[0], row.uses[run]) for row in self.rows]
        places = sorted((mine.place, own.place) for mine, own in shared if mine is not None and own is not None)
        return any(later[1] < earlier[1] for earlier, later in pairwise(places))

    def to_json(self) -> dict[str, Any]:
        sources = [source.to_json() if isinstance(source, Unavailable) else source for source in self.sources]
        return {"sources": sources, "rows": [asdict(row) for row in self.rows]}


def compare_stages(diagnoses: Sequence[Diagnosis]) -> ComparedStages | Unavailable:
    """Match the stages of all runs; why not, where no run has any."""
    found = [join_stages(each.tf_data, each.live_model, each.written) for each in diagnoses]
    known = [stages for stages in found if not isinstance(stages, Unavailable)]
    if not known:
        return next(stages for stages in found if isinstance(stages, Unavailable))
    with_functions = all(any(stage.written for stage in stages) for stages in known)
    pipelines = [() if isinstance(stages, Unavailable) else _name_calls(stages, with_functions) for stages in found]
    rows = _rows([[calls for calls, _ in pipeline] for pipeline in pipelines])
    return ComparedStages(
        tuple(
            StageRow(" + ".join(row), tuple(_use(row, pipeline) for pipeline in pipelines)) for row in reversed(rows)
        ),
        tuple(
            stages if isinstance(stages, Unavailable) else _source(diagnosis)
            for stages, diagnosis in zip(found, diagnoses, strict=True)
        ),
    )


_Calls = tuple[str, ...]
_Pipeline = Sequence[tuple[_Calls, PipelineStage]]


def _source(diagnosis: Diagnosis) -> str:
    return FROM_TRACE if isinstance(diagnosis.live_model, Unavailable) else FROM_MODEL


def _name_calls(stages: Sequence[PipelineStage], with_functions: bool) -> _Pipeline:
    """Return the calls that each stage stands for, those of one pipeline distinct."""
    seen: Counter[str] = Counter()
    named = []
    for stage in stages:
        if stage.name in ROOTS and len(stages) > 1:
            continue
        calls = [_written_call(call.text, with_functions) for call in stage.written] or _calls_of_kind(stage.name)
        seen.update(calls)
        named.append((tuple(call if seen[call] == 1 else f"{call} {seen[call]}" for call in calls), stage))
    return named


def _written_call(label: str, with_functions: bool) -> str:
    """Return ``map(parse)`` for ``map(parse, 2)``: numbers are what a comparison is about."""
    method, _, arguments = label.lstrip(".").partition("(")
    function = re.match(r"[^\W\d]\w*", arguments)
    is_named = with_functions and function is not None and function[0] != AUTOTUNE_WORD
    return f"{method}({function[0]})" if is_named and function else method


def _calls_of_kind(kind: str) -> list[str]:
    """Return the calls that an iterator stands for: ``shuffle`` and ``repeat`` for ``ShuffleAndRepeat``."""
    parts = [re.sub(r"^(Forever|Finite|Memory|File)(?=Repeat|Cache)", "", part) for part in kind.split("And")]
    return [method_of(part) or kind_of(part) for part in parts]


def _rows(pipelines: Sequence[Sequence[_Calls]]) -> list[_Calls]:
    """Return the smallest groups of calls that no run's fusion divides, each after its neighbor in its pipeline."""
    rows: list[_Calls] = []
    for pipeline in pipelines:
        place = 0
        for calls in pipeline:
            touched = [row for row in rows if set(row) & set(calls)]
            if touched:
                place = rows.index(touched[0])
                rows = [row for row in rows if row not in touched]
            rows.insert(place, tuple(dict.fromkeys(call for row in (*touched, calls) for call in row)))
            place += 1
    return rows


def _use(row: _Calls, pipeline: _Pipeline) -> StageUse | None:
    places = [len(pipeline) - 1 - number for number, (calls, _) in enumerate(pipeline) if set(calls) & set(row)]
    mine = [pipeline[len(pipeline) - 1 - place][1] for place in places]
    if not mine:
        return None
    return StageUse(
        ran=tuple(stage.name for stage in mine),
        work_ns=sum(stage.work_ns for stage in mine),
        parallelism=next((stage.parallelism for stage in mine if stage.parallelism is not None), None),
        buffered_elements=next((s.buffered_elements for s in mine if s.buffered_elements is not None), None),
        buffer_limit=next((stage.buffer_limit for stage in mine if stage.buffer_limit is not None), None),
        place=places[-1],
    )
