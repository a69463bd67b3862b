"""Race folders as a worker would leave them, without a worker."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_documents import DataFile, write_files
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import BLOCKS, SAMPLES, STEPS, TableWriter
from pipeline_lab.runs.store import RunStore
from tests.support.presets import BASELINE, OPTIMISED
from tests.support.run_folders import set_state

MS = 1_000_000
BATCH = 128
WORDS = RaceOptions(name="words", arms=(BASELINE.options, OPTIMISED.options))


@dataclass(frozen=True)
class PlantedArm:
    """What one arm is to show: mean step (ms) in each round, the loss, and the files of its examples in turn."""

    step_ms: Sequence[float]
    loss: float = 1.0
    files: Sequence[int] = (0, 1)
    load_percent: dict[int, float] = field(default_factory=dict)


def make_race(store: RunStore, *arms: PlantedArm, options: RaceOptions = WORDS) -> RunFolder:
    """Write a whole race; half of each step is waiting, each costs 5 ms of processor time, two files of 1000 records."""
    folder = store.create(options, render_source(options.arms[0]))
    fill_race(folder, *arms, block_steps=options.block_steps)
    set_state(folder, RunState.DONE)
    return folder


def fill_race(folder: RunFolder, *arms: PlantedArm, block_steps: int = WORDS.block_steps) -> None:
    """Write what a worker adds to a race's folder."""
    steps = block_steps
    blocks = TableWriter(folder.blocks, BLOCKS)
    for number in range(len(arms[0].step_ms)):
        for place, arm in enumerate(arms):
            wall = round(arm.step_ms[number] * steps * MS)
            load = arm.load_percent.get(number, 1.0)
            blocks.append(
                number, place, place, 0, number * steps, steps, wall, wall // 2, 5 * steps * MS, load, False, 0
            )
    blocks.close()
    for place, arm in enumerate(arms):
        _write_arm(folder.arm(place), arm, steps)


def _write_arm(folder: RunFolder, arm: PlantedArm, block_steps: int) -> None:
    folder.path.mkdir(parents=True, exist_ok=True)
    write_files(folder.files, [DataFile(f"/data/{index}.tfrecord", 1000, 10_000) for index in range(2)])
    noise = np.random.default_rng(0).normal(0, 0.05, len(arm.step_ms) * block_steps)
    steps, samples = TableWriter(folder.steps, STEPS), TableWriter(folder.samples, SAMPLES)
    for step, deviation in enumerate(noise):
        steps.append(step, False, 0, 0, 0, arm.loss + deviation, 0.5, -1, 0, 0)
        samples.append(step, arm.files[step % len(arm.files)], step % 1000)
    steps.close()
    samples.close()
