"""The options in the form: a plain document that may be invalid, and how to edit it.

Every stage keeps its key when it moves, so that its form fields keep their values.
"""

import copy
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

from pipeline_lab.data_classes import dataclass
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.runs.data_files.found_features import suggest_label
from pipeline_lab.stages.registry import STAGE_TYPES, usual_place
from pipeline_lab.workloads.records import RecordFeature, format_features
from pipeline_lab.workloads.registry import FUNCTION_STAGES, WORKLOADS
from pipeline_lab.workloads.workload import Workload

Document = dict[str, Any]

_BATCHES = tuple(name for name, kind in STAGE_TYPES.items() if kind.makes_batches)
"""Stages that batch examples."""


@dataclass(frozen=True)
class Draft:
    """A document being edited.

    Attributes:
        document: What :func:`pipeline_lab.options.run_options.read_options` would validate.
        stage_keys: One key per stage, in the order of the stages.
        generation: Increases when the whole document is replaced, so that old fields are discarded.
        origin: What it was started from: ``preset:…`` or ``run:…``.
        start: The document as it was then.
    """

    document: Document
    stage_keys: tuple[int, ...]
    generation: int
    origin: str = field(default="")
    start: Document = field(default_factory=dict)

    @property
    def stages(self) -> list[Document]:
        return list(self.document["pipeline"]["stages"])

    def with_stages(self, stages: list[Document], keys: tuple[int, ...]) -> "Draft":
        document = copy.deepcopy(self.document)
        document["pipeline"]["stages"] = stages
        return replace(self, document=document, stage_keys=keys)


def start_draft(options: RunOptions, origin: str, generation: int = 0) -> Draft:
    """Start from complete options."""
    document = options.model_dump(mode="json")
    keys = tuple(range(len(options.pipeline.stages)))
    return Draft(document, keys, generation, origin, copy.deepcopy(document))


def move_stage(draft: Draft, index: int, by: int) -> Draft:
    """Move a stage up (-1) or down (1); a move beyond either end changes nothing."""
    target = index + by
    stages, keys = draft.stages, list(draft.stage_keys)
    if not 0 <= target < len(stages):
        return draft
    stages.insert(target, stages.pop(index))
    keys.insert(target, keys.pop(index))
    return draft.with_stages(stages, tuple(keys))


def remove_stage(draft: Draft, index: int) -> Draft:
    stages, keys = draft.stages, list(draft.stage_keys)
    del stages[index], keys[index]
    return draft.with_stages(stages, tuple(keys))


def add_stage(draft: Draft, kind: str) -> Draft:
    """Add a stage with its defaults at its usual place."""
    stages, keys = draft.stages, list(draft.stage_keys)
    place = usual_place(kind, [stage["stage"] for stage in stages])
    stages.insert(place, default_stage(kind))
    keys.insert(place, max(keys, default=-1) + 1)
    return draft.with_stages(stages, tuple(keys))


def default_stage(kind: str) -> Document:
    return STAGE_TYPES[kind].model_validate({}).model_dump(mode="json")


def change_workload(draft: Draft, kind: str) -> Draft:
    """Switch to another workload: its defaults, its own stages instead of the old one's, and suitable batching."""
    if draft.document["workload"]["kind"] == kind:
        return draft
    workload = WORKLOADS[kind]()
    unknown = {option for each in WORKLOADS.values() for option in each.step_options} - workload.step_options
    training = {**draft.document["training"], **TrainingOptions().model_dump(mode="json", include=unknown)}
    document = {**draft.document, "workload": workload.model_dump(mode="json"), "training": training}
    fresh = max(draft.stage_keys, default=-1) + 1
    own_kinds = [stage for stage in workload.own_stages if stage not in workload.optional_stages]
    if workload.is_code:  # has its own dataset
        return replace(draft, document=document).with_stages([], ())
    if not draft.stages:
        fitting = [_suited(default_stage(stage), workload) for stage in ("read", *own_kinds, "batch", "prefetch")]
        return replace(draft, document=document).with_stages(fitting, tuple(range(fresh, fresh + len(fitting))))
    place = next((i for i, stage in enumerate(draft.stages) if stage["stage"] in FUNCTION_STAGES), 1)
    kept = [
        pair for pair in zip(draft.stages, draft.stage_keys, strict=True) if pair[0]["stage"] not in FUNCTION_STAGES
    ]
    own = [(default_stage(stage), fresh + offset) for offset, stage in enumerate(own_kinds)]
    if workload.has_varied_lengths:  # its examples are decoded one by one
        place = min(place, next((i for i, (stage, _) in enumerate(kept) if stage["stage"] in _BATCHES), place))
    if workload.parses_batches:
        place = 1 + next((i for i, (stage, _) in enumerate(kept) if stage["stage"] in _BATCHES), place - 1)
    pairs = [(_suited(stage, workload), key) for stage, key in kept[:place] + own + kept[place:]]
    changed = replace(draft, document=document)
    return changed.with_stages([stage for stage, _ in pairs], tuple(key for _, key in pairs))


def with_features(draft: Draft, workload: Document, features: Sequence[RecordFeature]) -> Draft:
    """Return the draft with the features found in its records."""
    found = {"features": format_features(features), "label": suggest_label(features)}
    document = {**draft.document, "workload": {**workload, **found}}
    return replace(draft, document=document, generation=draft.generation + 1)


def _suited(stage: Document, workload: Workload) -> Document:
    """Return a stage that suits the workload: only examples of varying length are padded or bucketed."""
    if stage["stage"] not in _BATCHES:
        return stage
    if workload.has_varied_lengths:
        parallel = {"mode": "padded_batch", "num_parallel_calls": None, "deterministic": None}
        return {**stage, **parallel} if stage.get("mode") == "batch" else stage
    if STAGE_TYPES[stage["stage"]].goes_by_length:
        return default_stage("batch")
    return {**stage, "mode": "batch"} if stage["stage"] == "batch" else stage


def stages_to_offer(draft: Draft) -> list[str]:
    """Return the stages that can be added: those of this workload, unique ones only once."""
    present = {stage["stage"] for stage in draft.stages}
    batches = () if "unbatch" in present or not present.intersection(_BATCHES) else _BATCHES
    single = {*(stage for stage in present if STAGE_TYPES[stage].once), *batches}
    workload = WORKLOADS[draft.document["workload"]["kind"]]()
    foreign = FUNCTION_STAGES.difference(workload.own_stages)
    foreign |= {"rebatch"} if workload.has_varied_lengths else set()
    foreign |= {name for name, kind in STAGE_TYPES.items() if kind.goes_by_length and not workload.sorts_by_length}
    return [stage for stage in STAGE_TYPES if stage not in foreign | single]


def describe_stage(stage: Document) -> str:
    """Write a stage in a few words: what matters of it, and what differs from its defaults, such as ``buffer_size 2048``."""
    defaults, matters = default_stage(stage["stage"]), STAGE_TYPES[stage["stage"]].matters
    changed = [
        f"{name} {_short(value)}" for name, value in stage.items() if name in matters or value != defaults.get(name)
    ]
    return ", ".join(changed)


def _short(value: Any) -> str:
    return "yes" if value is True else "no" if value is False else "–" if value is None else str(value)
