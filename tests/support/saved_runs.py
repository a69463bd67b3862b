"""Runs whose diagnosis lies on disk, and races with their events: what pages find when the work is done."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis, fingerprint_inputs
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.runs.race_standings import Rounds, find_standings, max_rounds
from pipeline_lab.runs.run_events import Event, PhaseEvent, RaceEvent, format_event
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.store import RunStore
from tests.support.races import WORDS, PlantedArm, make_race
from tests.support.recorded import job_steps
from tests.support.results import diagnosis
from tests.support.run_folders import make_run


def make_saved_run(store: RunStore, preset: str = "baseline", factor: float = 1.0) -> RunFolder:
    """Write a run whose saved diagnosis says that its steps took ``factor`` times 50 ms."""
    folder = make_run(store, preset)
    found = diagnosis()
    found = replace(
        found,
        source=replace(found.source, path=str(folder.path)),
        job_steps=job_steps(factor, noise=0.02, seed=round(100 * factor)),
    )
    SavedDiagnosis(folder.path).save(found, fingerprint_inputs(folder.path))
    return folder


def make_watched_race(store: RunStore, rounds: int = 16, options: RaceOptions = WORDS) -> RunFolder:
    """Write a race of 20 ms against 16 ms per step, with an event after each round."""
    generator = np.random.default_rng(0)
    base_ms = [20.0] + [16.0] * (len(options.arms) - 1)
    step_ms = [np.round(ms * np.exp(generator.normal(0, 0.02, rounds)), 6) for ms in base_ms]
    folder = make_race(store, *(PlantedArm([float(x) for x in each]) for each in step_ms), options=options)
    events: list[Event] = [PhaseEvent("importing"), PhaseEvent("racing")]
    events += [race_event(step_ms, number + 1, options) for number in range(rounds)]
    folder.events.write_text("".join(format_event(event) for event in events), encoding="utf-8")
    return folder


def race_event(
    step_ms: Sequence["np.ndarray[tuple[int], np.dtype[np.float64]]"], rounds: int, options: RaceOptions
) -> RaceEvent:
    """Return what the worker writes after this number of rounds."""
    table = np.array([each[:rounds] for each in step_ms]).T * 1e6
    standings = find_standings(Rounds(table, np.ones_like(table)), options)
    lines = [
        {
            "arm": each.arm,
            "pairs": each.result.pairs if each.result else 0,
            "ratio": each.result.ratio if each.result else None,
            "low": each.result.low or None if each.result else None,
            "high": each.result.high if each.result and np.isfinite(each.result.high) else None,
            "outcome": each.outcome.value,
        }
        for each in standings
    ]
    return RaceEvent(rounds, rounds, max_rounds(options), 2.0 * rounds, options.max_seconds, lines)
