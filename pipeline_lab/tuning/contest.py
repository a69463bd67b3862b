"""The configurations of a search around options: what runs alone, what races, what one costs."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pipeline_lab.errors import RunFailedError
from pipeline_lab.options.race_options import RaceOptions, read_race_options
from pipeline_lab.options.run_options import RunOptions, read_options
from pipeline_lab.options.tune_options import TuneOptions
from pipeline_lab.runs.run_documents import read_files
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.store import RunStore
from pipeline_lab.statistics.streams import IntArray
from pipeline_lab.tuning.deciding import Deciding
from pipeline_lab.tuning.history import History
from pipeline_lab.tuning.outlook import SamplingLimit
from pipeline_lab.tuning.space import Configuration, make_space
from pipeline_lab.tuning.trials import Trials, read_costs

MEMORY_STEP_BYTES = 64_000_000
"""Smaller differences in memory do not count."""
PROFILE_S = 20.0
PROFILE_SHARE = 1 / 20
"""Of the budget, what a run by itself may take if that is less."""


class Contest(Deciding[Configuration, RunOptions]):
    """The configurations of one search, what is known about them, and the current leader."""

    def __init__(self, options: TuneOptions, trials: Trials, history: History, store: RunStore) -> None:
        self.options = options
        self.space = make_space(options.start, may_reorder=options.may_reorder, only=options.only)
        super().__init__(options, trials, history, store, self.space.start)
        self.costs: dict[str, tuple[float, float]] = {}
        """Memory (bytes) and threads that the model expects of a configuration, by name."""
        self.sampling: SamplingLimit | None = None
        """How the start mixes its examples; known once it ran, None for a pipeline that is not assembled."""

    def run_alone(self, configuration: Configuration) -> RunFolder:
        """Run a configuration alone, with calibration and profile windows.

        Raises:
            RunFailedError: It failed; the text says why.
        """
        self.measured.add(configuration.name)
        (line,) = self.trials.run([_alone(configuration.options, self.options)])
        if line.failure:
            raise RunFailedError(f"The pipeline did not run ({configuration.name}): {line.failure}")
        folder = self.store.folder(line.run)
        self.budget.costs, self.budget.look_s = read_costs(folder), line.seconds or 0.0
        if self.sampling is None and self.options.start.is_assembled:
            cores = max(1, int(read_record(folder).environment.get("machine_cores") or 1))
            self.sampling = SamplingLimit(self.options.start, _records(folder, self.options.start), cores)
        return folder

    def make_race(self, leader: RunOptions, challengers: Sequence[RunOptions], rules: dict[str, Any]) -> RaceOptions:
        return race_of_options(leader, challengers, rules)

    def runs(self, arm: Configuration) -> RunOptions:
        return arm.options

    def screens(self, arm: Configuration) -> RunOptions:
        return _unprofiled(arm.options)

    def cost(self, name: str) -> tuple[float, ...]:
        """Return memory, threads and knobs turned; what the model was not asked about counts as most expensive."""
        turned = float(self._known[name].distance(self.space.start))
        if name not in self.costs:
            return (math.inf, math.inf, turned)
        memory_bytes, threads = self.costs[name]
        return (memory_bytes // MEMORY_STEP_BYTES, threads, turned)


def race_of_options(leader: RunOptions, challengers: Sequence[RunOptions], rules: dict[str, Any]) -> RaceOptions:
    """Return a race of jobs."""
    return read_race_options({**rules, "arms": [arm.model_dump(mode="json") for arm in (leader, *challengers)]})


def _records(folder: RunFolder, options: RunOptions) -> IntArray | None:
    """Return the records of each file that training reads, shape (files,); None if they were not counted."""
    files = read_files(folder.files)
    records = [file.records for file in files[: len(files) - options.training.held_out_files]]
    if None in records or not any(records):
        return None
    return np.array(records, dtype=np.int64) // options.pipeline.views  # there each view is counted


def _alone(options: RunOptions, search: TuneOptions) -> RunOptions:
    """Return what is run to look at a configuration: for a time instead of for steps, with everything measured."""
    document = options.model_dump(mode="json")
    document["training"] |= {
        "steps": None,
        "seconds": min(PROFILE_S, search.budget_s * PROFILE_SHARE),
        "calibrate": True,
    }
    document["profiling"]["enabled"] = True
    return read_options(document)


def _unprofiled(options: RunOptions) -> RunOptions:
    """Return options for a race that only has to choose: no profile windows after it."""
    return options.model_copy(update={"profiling": options.profiling.model_copy(update={"enabled": False})})
