"""A race inside a script's own training: blocks of its steps take their batches from one pipeline and then from another."""

import threading
import time
import weakref
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any

from pipeline_lab.capture.script_race.division import DISTRIBUTED, THREADS, Division
from pipeline_lab.capture.script_race.pass_starts import PassStarts, measure_starts
from pipeline_lab.capture.script_race.raced_arms import (
    AlternatingArm,
    fill_caches,
    find_candidates,
    make_datasets,
    open_arm,
)
from pipeline_lab.capture.script_race.switching import dataset_of, divided_by, exchange, inside
from pipeline_lab.errors import OptionsError, PipelineLabError
from pipeline_lab.options.race_options import CHANGES, ScriptRaceOptions
from pipeline_lab.runs.machine.nvidia import find_gpu
from pipeline_lab.runs.run_events import NoteEvent, PhaseEvent
from pipeline_lab.runs.run_folder import RunFolder, add_environment
from pipeline_lab.runs.run_tables import BLOCKS, TableWriter
from pipeline_lab.units import NS_PER_S, format_duration
from pipeline_lab.worker.job_context import StopRequest, mark_running
from pipeline_lab.worker.note.environment import describe_environment
from pipeline_lab.worker.note.event_log import Clock, EventLog
from pipeline_lab.worker.prepare.device import present_device
from pipeline_lab.worker.race.blocks import FIRST_STEPS, NOT_SETTLED, Block, LoadMeter
from pipeline_lab.worker.race.resting import LEAD_STEPS, AutotunerRest
from pipeline_lab.worker.race.rounds import RaceCourse, RaceJob
from pipeline_lab.worker.recipe.keeping import KeptRecipe
from pipeline_lab.worker.recipe.notes import note_of
from pipeline_lab.worker.recipe.wrapping import ledger
from pipeline_lab.worker.record.profiler import wait_for_devices

MOST_INTERRUPTIONS = 50
"""Loops of the script that may begin while a block runs before the block counts as too long for them."""
FROM_WORKERS = "The script trains on a PyDataset, whose workers Keras starts once for all of its readers; its pipelines cannot take turns."
STARTS = "Each pass of {batches:,} batches starts again, and its first batch takes time ({first}); every step counts with its share of that."
NO_CACHE = "The cache was not full when the race began; raise warmup_seconds to race with a full one."


class RaceOverError(SystemExit):
    """Ends the script once its race is over: what it has trained is thrown away."""


class ScriptRace:
    """Decides, before each call of the script that takes batches, which pipeline they come from.

    Args:
        folder: Of the race.
        options: Its options.
        log: Its events.
        stop: A request to end it.
    """

    def __init__(self, folder: RunFolder, options: ScriptRaceOptions, log: EventLog, stop: StopRequest) -> None:
        self._folder, self._options, self._log, self._stop = folder, options, log, stop
        self._clock = Clock()
        self._course: RaceCourse | None = None
        self._steps: Iterator[AlternatingArm] | None = None
        self._thread = 0
        self._key: object = None
        self._current: weakref.ref[Any] | None = None
        self._last: weakref.ref[Any] | None = None
        self._trained: weakref.WeakSet[Any] = weakref.WeakSet()
        self._taken = self._steps_of_call = 0
        self._loops = 0
        self._starts: PassStarts | None = None
        self.is_over = False
        """Whether the answer is known, or the race has failed."""
        self.failure: PipelineLabError | None = None

    @property
    def rounds(self) -> int:
        """Complete rounds so far."""
        return 0 if self._course is None else self._course.rounds

    @property
    def has_begun(self) -> bool:
        """Whether the script has begun to train."""
        return self._steps is not None

    def before(self, iterator: Any, steps: int, *, trains: bool) -> None:
        """Put the pipeline whose turn it is behind an iterator that the script is about to take batches from.

        Raises:
            RaceOverError: The race is over.
        """
        if self.is_over:
            raise RaceOverError(0)
        try:
            with inside():
                self._take_turns(iterator, steps, trains)
        except PipelineLabError as error:
            self.failure, self.is_over = error, True
        if self.is_over:
            raise RaceOverError(0)

    def note_gradients(self) -> None:
        """Remember that the script trains on what it took last."""
        if self._steps is None and self._last is not None and (last := self._last()) is not None:
            self._trained.add(last)

    def _take_turns(self, iterator: Any, steps: int, trains: bool) -> None:
        if self._steps is None:
            self._last = weakref.ref(iterator)
            if not trains and iterator not in self._trained:
                return
            self._begin(iterator)
        elif threading.get_ident() != self._thread or _key_of(dataset_of(iterator)) != self._key:
            return
        self._loops += self._current is None or self._current() is not iterator
        self._current = weakref.ref(iterator)
        assert self._steps is not None
        arm = next(self._steps, None)
        if arm is None:
            self.is_over = True
            return
        self._steps_of_call = steps
        exchange(iterator, arm.iterator)

    def _begin(self, iterator: Any) -> None:
        """Make the arms of what the script trains on.

        Raises:
            PipelineLabError: The script, or a change of it, cannot race.
        """
        self._log.write(PhaseEvent("building"))
        dataset, distributed = dataset_of(iterator), divided_by(iterator)
        if dataset is None:
            raise OptionsError(DISTRIBUTED)
        division = None if distributed is None else Division(distributed)
        KeptRecipe(self._folder, ledger).write()
        if any(part.kind == "PyDataset" for note in note_of(dataset).upstream() for part in note.python):
            raise OptionsError(FROM_WORKERS)
        device = present_device()
        add_environment(self._folder, describe_environment() | device.describe())
        candidates = find_candidates(dataset, self._options.changes)
        add_environment(self._folder, {CHANGES: {each.text: each.words for each in candidates}})
        self._folder.scratch.mkdir(exist_ok=True)
        datasets = make_datasets(dataset, candidates, self._folder.scratch)
        if division is not None and division.replicas > 1:
            self._note(THREADS)
        self._thread, self._key = threading.get_ident(), _key_of(dataset)
        self._steps = self._race(datasets, division, LoadMeter(find_gpu(device.ordinal)))
        mark_running(self._folder)

    def _race(self, datasets: list[Any], division: Division | None, meter: LoadMeter) -> Iterator[AlternatingArm]:
        """Yield the arm of each call of the script; every time it goes on, the call is over."""
        arms = [open_arm(*each, self._stop, division) for each in zip(self._options.arm_names, datasets, strict=True)]
        self._log.write(PhaseEvent("warmup"))
        steps_s = []
        for arm, dataset in zip(arms, datasets, strict=True):
            steps_s.append((yield from self._warm_up(arm, dataset)))
        endless = [arm.dataset for arm in arms]
        self._starts = measure_starts(datasets[0], endless, max(steps_s), self._options.warmup_seconds)
        if self._starts is not None:
            self._note(STARTS.format(batches=self._starts.batches, first=_list_starts(arms, self._starts)))
        self._log.write(PhaseEvent("racing"))
        with closing(TableWriter(self._folder.blocks, BLOCKS)) as table:
            course = self._course = RaceCourse(RaceJob(self._options, self._log, self._stop, table))
            ran_last: AlternatingArm | None = None
            for turn in course.turns():
                if ran_last is not None:
                    ran_last.resting.rest()
                ran_last = arms[turn.arm]
                course.enter(turn, (yield from self._run_block(ran_last, meter)))

    def _warm_up(self, arm: AlternatingArm, dataset: Any) -> Generator[AlternatingArm, None, float]:
        """Compile, fill shuffle buffer and caches, let the autotuner settle; return how long a step took, s."""
        limit_s = self._options.warmup_seconds
        deadline_s = time.monotonic() + limit_s
        if not fill_caches(dataset, limit_s, lambda: self._stop.is_set):
            self._note(f"{arm.name}: {NO_CACHE}")
        for _ in range(FIRST_STEPS):
            begun_s = time.monotonic()
            yield arm
        step_s = (time.monotonic() - begun_s) / self._steps_of_call
        tuning = AutotunerRest(arm.buffers)
        while not tuning.is_settled() and not self._stop.is_set:
            if time.monotonic() > deadline_s:
                self._note(f"{arm.name}: {NOT_SETTLED}")
                break
            yield arm
        arm.resting.begin(step_s)
        arm.resting.rest()
        return step_s

    def _run_block(self, arm: AlternatingArm, meter: LoadMeter) -> Generator[AlternatingArm, None, Block]:
        """Yield the arm until its block is complete, and return the block; one that a new loop cuts begins again."""
        start_share_ns = 0.0 if self._starts is None else self._starts.share_ns(arm.dataset)
        for _ in range(MOST_INTERRUPTIONS):
            drained = arm.drain()  # also of what came in while the script did something else between two of its loops
            loop = self._loops
            for _ in range(LEAD_STEPS):
                if self._loops == loop:
                    yield arm
            if self._loops != loop:
                continue
            wait_for_devices()
            meter.start()
            start_ns, first_step, steps = self._clock.now_ns(), self._taken, 0
            while steps < self._options.block_steps and self._loops == loop:
                yield arm
                steps += self._steps_of_call
            if self._loops != loop:
                continue
            wait_for_devices()
            wall_ns = self._clock.now_ns() - start_ns
            self._taken += steps
            with_start_ns = wall_ns + round(steps * start_share_ns)
            block = Block(start_ns, first_step, steps, with_start_ns, None, drained, meter.read())
            arm.resting.begin(wall_ns / steps / NS_PER_S)
            return block
        raise OptionsError(
            f"The script takes at most {LEAD_STEPS + self._options.block_steps} batches in one go from its dataset, and a block "
            "needs more; choose a shorter one with --block."
        )

    def _note(self, sentence: str) -> None:
        self._log.write(NoteEvent(sentence))


def _list_starts(arms: list[AlternatingArm], starts: PassStarts) -> str:
    return ", ".join(f"{arm.name}: {format_duration(ns)}" for arm, ns in zip(arms, starts.first_ns, strict=True))


def _key_of(dataset: Any) -> object:
    """Return what is equal for datasets that one place of the script makes."""
    if dataset is None:
        return None
    note = note_of(dataset)
    return (note.method, id(dataset) if note.site is None else note.site.key)
