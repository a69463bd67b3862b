"""Which changes are predicted and raced, fixed before anybody looks at a prediction.

Three workloads, each with one pipeline to start from: real images on a real network, a job of known times that sleeps, a
Python generator. The numbers are chosen for two cores and steps of some tens of milliseconds.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline_lab.options.run_options import RunOptions, read_options

Stage = dict[str, Any]
Document = dict[str, Any]
Edit = Callable[[Document], None]


@dataclass(frozen=True)
class Change:
    """One changed configuration."""

    name: str
    options: RunOptions


@dataclass(frozen=True)
class Plan:
    """A workload with its start and everything that is changed about it."""

    name: str
    baseline: RunOptions
    changes: tuple[Change, ...]


def plans() -> tuple[Plan, ...]:
    return (_images(), _sleeping(), _generator())


def stage(name: str, **values: Any) -> Edit:
    """Change fields of the first stage of that name."""
    return lambda document: _stages(document)[_place(document, name)].update(values)


def without(name: str) -> Edit:
    return lambda document: _stages(document).pop(_place(document, name))


def moved(name: str, *, behind: str) -> Edit:
    def edit(document: Document) -> None:
        taken = _stages(document).pop(_place(document, name))
        _stages(document).insert(_place(document, behind) + 1, taken)

    return edit


def added(new: Stage, *, behind: str) -> Edit:
    return lambda document: _stages(document).insert(_place(document, behind) + 1, dict(new))


def last(new: Stage) -> Edit:
    return lambda document: _stages(document).append(dict(new))


def workload(**values: Any) -> Edit:
    return lambda document: document["workload"].update(values)


def pipeline(**values: Any) -> Edit:
    return lambda document: document["pipeline"].update(values)


def _plan(name: str, document: Document, changes: dict[str, Sequence[Edit]]) -> Plan:
    document = {
        **document,
        "name": name,
        "training": {"steps": 200, "warmup_steps": 5},
        "profiling": {"enabled": False},
    }
    return Plan(name, read_options(document), tuple(_change(document, what, edits) for what, edits in changes.items()))


def _change(document: Document, name: str, edits: Sequence[Edit]) -> Change:
    changed = copy.deepcopy(document)
    for edit in edits:
        edit(changed)
    return Change(name, read_options({**changed, "name": name[:200]}))


def _stages(document: Document) -> list[Stage]:
    found: list[Stage] = document["pipeline"]["stages"]
    return found


def _place(document: Document, name: str) -> int:
    return next(index for index, each in enumerate(_stages(document)) if each["stage"] == name)


PREFETCH: Stage = {"stage": "prefetch", "buffer_size": 2}
CACHE: Stage = {"stage": "cache"}
FILE_CACHE: Stage = {"stage": "cache", "where": "file"}


def _images() -> Plan:
    parallel = (stage("parse", num_parallel_calls=2), stage("augment", num_parallel_calls=2))
    batched = (moved("parse", behind="batch"), moved("augment", behind="parse"))
    cached = (moved("parse", behind="read"), added(CACHE, behind="parse"))
    document = {
        "workload": {"kind": "images", "data": "digits", "image_size": 16, "examples_per_file": "4x256"},
        "pipeline": {
            "stages": [
                {"stage": "read"},
                {"stage": "shuffle", "buffer_size": 256},
                {"stage": "repeat"},
                {"stage": "parse"},
                {"stage": "augment", "pad": 2, "crop": 16, "cutout": 4},
                {"stage": "batch", "size": 32},
            ],
            "tensorflow_rewrites": False,
        },
    }
    return _plan(
        "images",
        document,
        {
            "prefetch": [last(PREFETCH)],
            "parse in 2 calls": [stage("parse", num_parallel_calls=2)],
            "augment in 2 calls": [stage("augment", num_parallel_calls=2)],
            "both in 2 calls": [*parallel],
            "both in 2 calls, prefetch": [*parallel, last(PREFETCH)],
            "both by AUTOTUNE, prefetch": [
                stage("parse", num_parallel_calls="autotune"),
                stage("augment", num_parallel_calls="autotune"),
                last(PREFETCH),
            ],
            "both in 8 calls of a pool of 1, prefetch": [
                stage("parse", num_parallel_calls=8),
                stage("augment", num_parallel_calls=8),
                last(PREFETCH),
                pipeline(private_threadpool_size=1),
            ],
            "both in 2 calls, any order, prefetch": [*parallel, last(PREFETCH), pipeline(deterministic=False)],
            "batches": [*batched],
            "batches, prefetch": [*batched, last(PREFETCH)],
            "batches in 2 calls, prefetch": [*batched, *parallel, last(PREFETCH)],
            "cache behind parse": [*cached],
            "cache behind parse, prefetch": [*cached, last(PREFETCH)],
            "cache of records": [added(CACHE, behind="read")],
            "cache on disk behind parse": [moved("parse", behind="read"), added(FILE_CACHE, behind="parse")],
            "cache behind parse, augment in 2 calls, prefetch": [
                *cached,
                stage("augment", num_parallel_calls=2),
                last(PREFETCH),
            ],
            "rewrites": [pipeline(tensorflow_rewrites=True)],
            "4 files at a time": [stage("read", mode="interleave", cycle_length=4, num_parallel_calls=2)],
            "batch of 16": [stage("batch", size=16)],
            "batch of 64": [stage("batch", size=64)],
            "no augmentation": [without("augment")],
            "no augmentation, prefetch": [without("augment"), last(PREFETCH)],
        },
    )


def _sleeping() -> Plan:
    document = {
        "workload": {
            "kind": "synthetic",
            "examples_per_file": "4x100",
            "read_ms": 0.2,
            "map_ms": 1.0,
            "compute_ms": 8.0,
        },
        "pipeline": {
            "stages": [
                {"stage": "read"},
                {"stage": "repeat"},
                {"stage": "map"},
                {"stage": "batch", "size": 16},
                PREFETCH,
            ],
            "tensorflow_rewrites": False,
        },
    }

    def calls(number: int | str, pool: int | None = None) -> list[Edit]:
        return [stage("map", num_parallel_calls=number), pipeline(private_threadpool_size=pool)]

    early = (moved("repeat", behind="map"), added(CACHE, behind="map"))
    return _plan(
        "sleeping",
        document,
        {
            "2 calls": calls(2),
            "4 calls": calls(4),
            "4 calls, pool of 4": calls(4, 4),
            "8 calls, pool of 4": calls(8, 4),
            "8 calls, pool of 8": calls(8, 8),
            "AUTOTUNE": calls("autotune"),
            "AUTOTUNE, pool of 8": calls("autotune", 8),
            "no prefetch": [without("prefetch")],
            "2 calls, no prefetch": [*calls(2), without("prefetch")],
            "8 calls, pool of 8, no prefetch": [*calls(8, 8), without("prefetch")],
            "prefetch of 16": [stage("prefetch", buffer_size=16)],
            "batch sees": [moved("map", behind="batch")],
            "batches in 2 calls": [moved("map", behind="batch"), *calls(2)],
            "cache behind map": [*early],
            "cache of records": [added(CACHE, behind="read")],
            "cache on disk behind map": [moved("repeat", behind="map"), added(FILE_CACHE, behind="map")],
            "4 files at a time": [stage("read", mode="interleave", cycle_length=4, num_parallel_calls=2)],
            "4 files at a time, 4 calls, pool of 8": [
                stage("read", mode="interleave", cycle_length=4, num_parallel_calls=4),
                *calls(4, 8),
            ],
            "any order, 4 calls, pool of 4": [*calls(4, 4), pipeline(deterministic=False)],
            "shorter map": [workload(map_ms=0.4)],
            "longer reading": [workload(read_ms=1.5)],
            "longer step": [workload(compute_ms=25.0)],
            "shorter step, 8 calls, pool of 8": [workload(compute_ms=2.0), *calls(8, 8)],
            "batch of 8": [stage("batch", size=8)],
            "batch of 32, 4 calls, pool of 4": [stage("batch", size=32), *calls(4, 4)],
            "rewrites, no prefetch": [without("prefetch"), pipeline(tensorflow_rewrites=True)],
        },
    )


def _generator() -> Plan:
    document = {
        "workload": {
            "kind": "generator",
            "examples_per_generator": "4x100",
            "example_ms": 0.3,
            "compute_ms": 6.0,
        },
        "pipeline": {
            "stages": [{"stage": "read"}, {"stage": "repeat"}, {"stage": "batch", "size": 32}, PREFETCH],
            "tensorflow_rewrites": False,
        },
    }
    cached = (added(CACHE, behind="read"),)
    return _plan(
        "generator",
        document,
        {
            "4 at once": [workload(examples_at_once=4)],
            "a batch at once": [workload(examples_at_once=32)],
            "4 generators in turn": [stage("read", mode="interleave", cycle_length=4)],
            "2 generators at a time": [stage("read", mode="interleave", cycle_length=2, num_parallel_calls=2)],
            "4 generators at a time, pool of 8": [
                stage("read", mode="interleave", cycle_length=4, num_parallel_calls=4),
                pipeline(private_threadpool_size=8),
            ],
            "no prefetch": [without("prefetch")],
            "a batch at once, no prefetch": [workload(examples_at_once=32), without("prefetch")],
            "prefetch of 8": [stage("prefetch", buffer_size=8)],
            "cache": [*cached],
            "cache, no prefetch": [*cached, without("prefetch")],
            "cache on disk": [added(FILE_CACHE, behind="read")],
            "longer examples": [workload(example_ms=1.0)],
            "shorter examples": [workload(example_ms=0.05)],
            "longer step": [workload(compute_ms=25.0)],
            "batch of 16": [stage("batch", size=16)],
            "batch of 64": [stage("batch", size=64)],
            "rewrites": [pipeline(tensorflow_rewrites=True)],
            "rewrites, no prefetch": [without("prefetch"), pipeline(tensorflow_rewrites=True)],
        },
    )
