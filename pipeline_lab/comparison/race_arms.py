"""The arms of a race: what they are called, and what was measured in each.

Arms of one name are called by the options in which they differ, for a letter alone tells nothing.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.diagnosis.saved import diagnose_saved
from pipeline_lab.analysis.sampling import file_sampling
from pipeline_lab.analysis.sampling.file_reads import FileReads
from pipeline_lab.analysis.sampling.file_sampling import FileSampling
from pipeline_lab.analysis.steps.job_steps import NO_LOSS
from pipeline_lab.comparison.differences import Difference, find_differences, flatten_options
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError, TraceReadError, Unavailable
from pipeline_lab.options.race_options import AnyRace, RaceOptions, ScriptRaceOptions, arm_name
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.run_documents import read_files
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import SAMPLES, STEPS, read_table
from pipeline_lab.units import NS_PER_MS, NS_PER_S

MOST_DIFFERENCES = 2
"""Options that a name holds; *What differs* lists all of them."""
LONGEST_VALUE = 24
"""Characters of a value in a name, so that a table still has room for it."""
STAGES = "pipeline.stages"
"""The order of the stages, which is long; of a stage that one arm lacks the stage's own options tell in fewer words."""


def name_arms(options: AnyRace) -> tuple[str, ...]:
    """Return the arms' names, baseline first; one of several that are called alike is ``baseline (B: batch.size = 64)``."""
    if isinstance(options, ScriptRaceOptions):
        return options.arm_names
    called = [arm_name(arm, number) for number, arm in enumerate(options.arms)]
    named = list(options.arm_names)
    for name in set(called):
        alike = [number for number, other in enumerate(called) if other == name]
        if differences := _differences(options, alike):
            for place, number in enumerate(alike):
                named[number] = f"{named[number].removesuffix(')')}: {_told(differences, place)})"
    return tuple(named)


def describe_alike(options: AnyRace) -> str:
    """Say which arms have the same options; empty where no two were."""
    if isinstance(options, ScriptRaceOptions):
        return ""
    holders: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, arm in zip(name_arms(options), options.arms, strict=True):
        told = flatten_options(arm.model_dump(mode="json"))
        holders.setdefault(tuple(told.items()), []).append(name)
    return " ".join(
        f"{' and '.join(names)} have the same options: what differs between them is chance."
        for names in holders.values()
        if len(names) > 1
    )


def _differences(options: RaceOptions, arms: list[int]) -> tuple[Difference, ...]:
    """Return the options in which these arms are not all alike; none if there is one arm only."""
    documents = [options.arms[number].model_dump(mode="json") for number in arms]
    found = find_differences(documents, [{}] * len(arms), [None] * len(arms)).options
    return tuple(each for each in found if each.path != STAGES) or found


def _told(differences: tuple[Difference, ...], place: int) -> str:
    """Write the options of one of the arms, in the words of ``--set``."""
    words = [
        f"{each.path.removeprefix('pipeline.')} = {_short(each.values[place])}"
        for each in differences[:MOST_DIFFERENCES]
    ]
    return ", ".join([*words, "…"] if len(differences) > MOST_DIFFERENCES else words)


def _short(value: str | None) -> str:
    text = "none" if value is None or value == "null" else value
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


FloatArray = NDArray[np.float64]

RACE_TAIL_SHARE = 0.5
"""Loss and accuracy are means over this share of the measured steps, the last ones."""
DIVERGED = Unavailable("It is not finite at the end of the race: training diverged.")
BATCH_UNKNOWN = Unavailable("The examples in a batch of your own dataset are not counted.")
SCRIPT_BATCH = Unavailable("The examples in a batch of a script are not counted.")
SCRIPT_EXAMPLES = Unavailable("Which examples a script reads is not noted while it races.")
SCRIPT_WAIT = Unavailable("The script asks for its batches inside a graph, where the wait for one is not measured.")
SCRIPT_IDLE = Unavailable("A race inside a script records no profile windows; watch the script for them.")
NO_IDLE_TIME = Unavailable(
    "The arm has no profile window: the race ended before it recorded them, or profiling is off; race to the end with "
    "profiling.enabled on."
)


@dataclass(frozen=True)
class ArmIdle:
    """The arm's device in the profile window that was recorded after its blocks.

    Attributes:
        device: What stands for the device: its plane's name, or ``host compute``.
        idle_percent: Idle time, share of the window.
        cause: What most of it was for; None if there was none.
        trace: The window's folder, for a closer look.
    """

    device: str
    idle_percent: float
    cause: GapCause | None
    trace: Path

    def to_json(self) -> dict[str, Any]:
        return {"device": self.device, "idle_percent": self.idle_percent, "cause": self.cause}


@dataclass(frozen=True, eq=False)
class ArmResult:
    """One arm, over its blocks.

    Attributes:
        name: Of the arm.
        steps: Measured steps.
        step_ns, wait_ns: Mean time of a step, and of the wait for its batch.
        cpu_s_per_1000: Processor seconds of the process per thousand examples; a module of the user's does not say how
            many examples a batch holds.
        losses, accuracies: Of the last half of all measured steps, NaN where the workload has none, shape (steps / 2,).
        sampling: Files of the examples that the pipeline yielded, over as many of them as every arm has that noted any.
        idle: Device idle time, from the window recorded after the blocks.
    """

    name: str
    steps: int
    step_ns: float
    wait_ns: float | Unavailable
    cpu_s_per_1000: float | Unavailable
    losses: FloatArray
    accuracies: FloatArray
    sampling: FileSampling | Unavailable
    idle: ArmIdle | Unavailable = NO_IDLE_TIME

    @property
    def loss(self) -> float | Unavailable:
        return _mean(self.losses)

    @property
    def accuracy(self) -> float | Unavailable:
        return _mean(self.accuracies)

    def to_json(self) -> dict[str, Any]:
        """Return the arm as JSON; times in ms, shares in percent."""
        accuracy, sampling = self.accuracy, self.sampling
        return {
            "name": self.name,
            "steps": self.steps,
            "step_ms": self.step_ns / NS_PER_MS,
            "wait_ms": self.wait_ns.to_json() if isinstance(self.wait_ns, Unavailable) else self.wait_ns / NS_PER_MS,
            "cpu_s_per_1000_examples": self.cpu_s_per_1000.to_json()
            if isinstance(self.cpu_s_per_1000, Unavailable)
            else self.cpu_s_per_1000,
            "loss": self.loss.to_json() if isinstance(self.loss, Unavailable) else self.loss,
            "accuracy_percent": accuracy.to_json() if isinstance(accuracy, Unavailable) else 100 * accuracy,
            "file_sampling": sampling.to_json()
            if isinstance(sampling, Unavailable)
            else {
                "total_variation": sampling.total_variation,
                "total_variation_ideal": sampling.total_variation_ideal,
                "unopened": sampling.unopened,
                "coverage_percent": sampling.coverage_percent,
                "same_source_per_batch": None if sampling.same_source is None else sampling.same_source.per_batch,
            },
            "idle": self.idle.to_json(),
        }


def count_samples(folder: RunFolder) -> int:
    """Return the examples that an arm has noted."""
    return int(read_table(folder.samples, SAMPLES).num_rows)


def read_arm(folder: RunFolder, name: str, options: RunOptions, blocks: pa.Table, samples: int) -> ArmResult:
    """Read one arm.

    Args:
        folder: The arm's part of the race's folder.
        name: Of the arm.
        options: Of the arm.
        blocks: The arm's blocks to look at, of schema ``BLOCKS``, at least one.
        samples: Examples, the first ones, over which the sampling is looked at.
    """
    steps = _count(blocks, "steps")
    rows = read_table(folder.steps, STEPS)
    rows = rows.filter(pa.compute.invert(rows["warmup"]))
    last = rows.slice(round((1 - RACE_TAIL_SHARE) * rows.num_rows))
    return ArmResult(
        name=name,
        steps=steps,
        step_ns=_count(blocks, "wall_ns") / steps,
        wait_ns=_count(blocks, "wait_ns") / steps,
        cpu_s_per_1000=_count(blocks, "cpu_ns") / NS_PER_S / steps / options.pipeline.batch_size * 1e3
        if options.is_assembled
        else BATCH_UNKNOWN,
        losses=last["loss"].to_numpy().astype(np.float64),
        accuracies=last["accuracy"].to_numpy().astype(np.float64),
        sampling=_read_sampling(folder, samples, options.pipeline.views),
        idle=_read_idle(folder),
    )


def read_script_arm(name: str, blocks: pa.Table) -> ArmResult:
    """Read one arm of a race inside a script, whose one model all arms train.

    Args:
        name: Of the arm.
        blocks: The arm's blocks to look at, of schema ``BLOCKS``, at least one.
    """
    steps = _count(blocks, "steps")
    return ArmResult(
        name=name,
        steps=steps,
        step_ns=_count(blocks, "wall_ns") / steps,
        wait_ns=SCRIPT_WAIT if blocks["wait_ns"].null_count else _count(blocks, "wait_ns") / steps,
        cpu_s_per_1000=SCRIPT_BATCH,
        losses=np.empty(0),
        accuracies=np.empty(0),
        sampling=SCRIPT_EXAMPLES,
        idle=SCRIPT_IDLE,
    )


def _count(blocks: pa.Table, column: str) -> int:
    return int(np.sum(blocks[column].to_numpy()))


def _read_idle(folder: RunFolder) -> ArmIdle | Unavailable:
    """Read what the arm's window says; the app has seen to it before that its diagnosis is on disk."""
    windows = folder.windows()
    if not windows:
        return NO_IDLE_TIME
    try:
        gaps = diagnose_saved(windows[-1]).idle_gaps
    except TraceReadError as error:
        return Unavailable(str(error))
    if isinstance(gaps, Unavailable):
        return gaps
    idle_percent, idle_ns = gaps.idle_percent, gaps.idle_by_cause_ns
    if isinstance(idle_percent, Unavailable):
        return idle_percent
    cause = max(idle_ns, key=idle_ns.__getitem__) if gaps.idle_ns else None
    return ArmIdle(gaps.device, idle_percent, cause, windows[-1])


def _read_sampling(folder: RunFolder, count: int, views: int) -> FileSampling | Unavailable:
    samples = read_table(folder.samples, SAMPLES).slice(0, count)
    if not samples.num_rows:
        return Unavailable("The arm noted no samples; switch profiling.sample_probe on.")
    try:
        return file_sampling.measure_sampling(read_files(folder.files), samples, FileReads({}, {}), views=views)
    except TraceIncompleteError as error:
        return Unavailable(str(error))


def _mean(values: FloatArray) -> float | Unavailable:
    if not values.size or np.isnan(values).all():
        return NO_LOSS
    return float(np.mean(values)) if np.isfinite(values).all() else DIVERGED
