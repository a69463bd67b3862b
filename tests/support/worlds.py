"""Worlds in which the true step time of every configuration is known, so that one can see whether a search finds it."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pipeline_lab.advice.measured_run import Measured
from pipeline_lab.advice.step_terms import Term
from pipeline_lab.advice.what_if import Prediction
from pipeline_lab.errors import Unavailable
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.tune_options import TuneOptions
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.store import RunStore
from pipeline_lab.stages.delivery import PrefetchStage
from pipeline_lab.tuning.executors.executor import Finished, SearchStoppedError, Trial, Watch
from pipeline_lab.tuning.outlook import SearchModel
from pipeline_lab.tuning.search import search
from pipeline_lab.units import NS_PER_MS
from tests.support.races import PlantedArm, make_race
from tests.support.run_folders import set_state
from tests.support.true_times import BATCH, CORES, NAIVE, SMALL, STEP_MS, planted, true_ms

__all__ = [
    "NAIVE",
    "SMALL",
    "STEP_MS",
    "KilledError",
    "World",
    "blind",
    "make_search",
    "predicted",
    "true_ms",
    "tune_options",
]


def predicted(believed_ms: Callable[[RunOptions], float]) -> SearchModel:
    """Return a model that believes in some step times; each thread counts, a prefetch costs a MB per batch."""

    def measure(folder: RunFolder) -> Measured:
        options = RunOptions.model_validate(read_record(folder).options)
        return Measured(options, believed_ms(options) * NS_PER_MS, STEP_MS * NS_PER_MS, (), CORES, CORES)

    def predict(_: Measured, options: RunOptions) -> Prediction:
        step_ms, last = believed_ms(options), options.pipeline.stages[-1]
        depth = last.buffer_size if isinstance(last, PrefetchStage) and isinstance(last.buffer_size, int) else 0
        threads = options.pipeline.private_threadpool_size or CORES
        binds = "training step" if step_ms <= STEP_MS else "map"
        return Prediction(
            step_ms * NS_PER_MS,
            (Term(binds, step_ms * NS_PER_MS),),
            STEP_MS * NS_PER_MS,
            BATCH,
            depth * 1_000_000,
            threads,
        )

    return SearchModel(measure, predict)


def blind() -> SearchModel:
    """Return a model that cannot say anything."""
    return SearchModel(lambda _: Unavailable("The step holds Python's lock."), lambda *_: Unavailable("unknown"))


@dataclass
class World:
    """An executor that measures nothing: it writes runs and races as the true step times would have made them.

    Attributes:
        store: Where they go.
        true_ms: Step time of a configuration.
        seconds: What every trial takes.
        machines: How many trials go on at once.
        breaks: Configurations that do not run, and spoil the race that they are in.
        dies_after: Trials after which the process of the search is killed.
        stops_after: Trials after which somebody cancels.
        rounds_of: How many rounds there is time for in a race.
    """

    store: RunStore
    true_ms: Callable[[RunOptions], float] = true_ms
    seconds: float = 10.0
    machines: int = 1
    noise: float = 0.01
    breaks: Callable[[RunOptions], bool] = lambda _: False
    dies_after: int | None = None
    stops_after: int | None = None
    rounds_of: Callable[[RaceOptions], int] = lambda race: race.pairs
    measured: list[RunOptions | RaceOptions] = field(default_factory=list)

    def check(self, options: RunOptions) -> None:
        pass

    def close(self) -> None:
        pass

    def run(self, trials: Sequence[Trial], watch: Watch) -> None:
        for trial in trials:
            if len(self.measured) == self.dies_after:
                raise KilledError
            if len(self.measured) == self.stops_after or watch.should_stop():
                raise SearchStoppedError("The search was asked to stop; what it found so far is kept.")
            self.measured.append(trial.options)
            watch.ended(trial, self._measure(trial.options))

    def _measure(self, options: RunOptions | RaceOptions) -> Finished:
        arms = options.arms if isinstance(options, RaceOptions) else (options,)
        if any(map(self.breaks, arms)):
            folder = self.store.create(options, render_source(arms[0]))
            set_state(folder, RunState.FAILED, "Out of memory.")
            return Finished(folder.id, "here", self.seconds, "Out of memory.")
        if isinstance(options, RunOptions):
            folder = self.store.create(options, render_source(options))
            set_state(folder, RunState.DONE)
        else:
            folder = make_race(self.store, *(self._arm(arm, options) for arm in arms), options=options)
        return Finished(folder.id, "here", self.seconds)

    def _arm(self, arm: RunOptions, race: RaceOptions) -> PlantedArm:
        return planted(self.true_ms(arm), arm.name, min(race.pairs, self.rounds_of(race)), self.noise)


class KilledError(BaseException):
    """What a kill looks like from inside."""


def tune_options(**changes: object) -> TuneOptions:
    document = {"start": NAIVE.model_dump(mode="json"), "only": SMALL, "budget_s": 600.0, **changes}
    return TuneOptions.model_validate(document)


def make_search(store: RunStore, state: RunState = RunState.DONE, stops_after: int | None = None) -> RunFolder:
    """Write a whole search with all its trials; one that stops keeps what it had until then."""
    options = tune_options()
    folder = store.create(options, render_source(options.start))
    with contextlib.suppress(SearchStoppedError):
        search(folder, options, store, World(store, stops_after=stops_after), lambda: False, predicted(true_ms))
    set_state(folder, state)
    return folder
