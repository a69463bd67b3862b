"""Races inside scripts, in the process that has TensorFlow."""

import itertools
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import tensorflow as tf
import tf_keras  # noqa: F401 (before a race, as a script does)

from pipeline_lab.capture.script.noted_datasets import note_new_datasets
from pipeline_lab.capture.script_race import pass_starts, script_race
from pipeline_lab.capture.script_race.division import Division
from pipeline_lab.capture.script_race.pass_starts import batches_of_pass
from pipeline_lab.capture.script_race.raced_arms import AlternatingArm, open_arm
from pipeline_lab.capture.script_race.script_race import RaceOverError, ScriptRace
from pipeline_lab.capture.script_race.switching import switched_by
from pipeline_lab.options.race_options import CHANGES, ScriptRaceOptions
from pipeline_lab.runs.run_events import NoteEvent, RaceEvent, read_events
from pipeline_lab.runs.run_folder import read_record
from pipeline_lab.runs.run_tables import BLOCKS, read_table
from pipeline_lab.runs.store import RunStore
from pipeline_lab.worker.job_context import StopRequest
from pipeline_lab.worker.note.event_log import EventLog
from pipeline_lab.worker.race.buffers import Buffers, make_steady
from pipeline_lab.worker.recipe.replaying import keep_calls
from pipeline_lab.worker.record.pipeline_model import may_change
from tests.support.patience import until

_numbers = itertools.count()


def _as_asked(words: dict[str, str] | None, name: str) -> dict[str, str] | None:
    return words and {key.replace(name, "train.py"): text.replace(name, "train.py") for key, text in words.items()}


def _prefetched(arm: AlternatingArm) -> list[float | str]:
    """Return the depths of an arm's prefetches, in batches."""
    return [
        "tuned" if may_change(parameter) else parameter.value
        for node, _ in arm.buffers._nodes()
        if node.name == "Prefetch"
        for parameter in node.parameters
    ]


def prefetched_in_a_race() -> dict[str, list[float]]:
    """Return the depths of the prefetches of datasets that end in some way, as a race of presets makes them."""
    numbers = tf.data.Dataset.range(4).map(lambda number: number)
    made = {
        "tuned": lambda: numbers.prefetch(tf.data.AUTOTUNE),
        "fixed": lambda: numbers.prefetch(3),
        "none": lambda: numbers,
    }
    depths = {}
    for name, make in made.items():
        iterator = iter(make_steady(make))
        next(iterator)
        nodes = (node for node, _ in Buffers(iterator)._nodes() if node.name == "Prefetch")
        depths[name] = [parameter.value for node in nodes for parameter in node.parameters if not may_change(parameter)]
    return depths


def race_script(text: str, changes: list[str], **settings: Any) -> dict[str, Any]:
    """Run a script, ``train.py`` to its changes, with a race inside it, and return what came of both."""
    note_new_datasets()
    keep_calls()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / f"train_{next(_numbers)}.py"  # the process remembers the calls of earlier ones
        script.write_text(textwrap.dedent(text), encoding="utf-8")
        options = ScriptRaceOptions(
            script=str(script),
            folder=folder,
            changes=tuple(each.replace("train.py", script.name) for each in changes),
            **settings,
        )
        run = RunStore(Path(folder) / "store").create(options, options.source)
        race = ScriptRace(run, options, EventLog(run.events), StopRequest())
        seen: dict[str, Any] = {"__name__": "__main__"}
        arms: list[AlternatingArm] = []
        drains: list[int] = []
        drain = AlternatingArm.drain
        came_to_its_end = False
        with (
            switched_by(race),
            patch.object(script_race, "open_arm", lambda *how: arms.append(open_arm(*how)) or arms[-1]),
            patch.object(AlternatingArm, "drain", lambda arm: drains.append(drain(arm)) or drains[-1]),
        ):
            try:
                exec(compile(script.read_text(), str(script), "exec"), seen)
                came_to_its_end = True
            except RaceOverError:
                pass
            finally:
                keep_calls(keeps=False)
        events = read_events(run.events)
        return {
            "ended_by_itself": came_to_its_end,
            "failure": None if race.failure is None else str(race.failure).replace(script.name, "train.py"),
            "rounds": race.rounds,
            "blocks": [(row["round"], row["arm"], row["steps"]) for row in read_table(run.blocks, BLOCKS).to_pylist()],
            "wall_ns": [row["wall_ns"] for row in read_table(run.blocks, BLOCKS).to_pylist()],
            "looks": sum(isinstance(event, RaceEvent) for event in events),
            "notes": [event.sentence for event in events if isinstance(event, NoteEvent)],
            "words": _as_asked(read_record(run).environment.get(CHANGES), script.name),
            "state": read_record(run).status.state.value,
            "drains": len(drains),
            "prefetched": [_prefetched(arm) for arm in arms],
            "traced": seen.get("traced"),
            "batches": [tf.nest.map_structure(int, each) for each in seen.get("batches", [])],
        }


def count_beyond(replicas: int, each: int) -> tuple[int, int]:
    """Return how many batches lie behind an arm's own iterator once all is idle: as its division says, and as counted."""
    made = itertools.count()
    last = [0]

    def note(batch: Any) -> Any:
        last[0] = next(made) + 1
        return batch

    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    numbers = tf.data.Dataset.range(1000).batch(2).with_options(options)
    own = iter(numbers.map(lambda batch: tf.ensure_shape(tf.numpy_function(note, [batch], tf.int64), [None])))
    strategy = tf.distribute.MirroredStrategy([f"CPU:{number}" for number in range(replicas)])
    division = Division(
        strategy.experimental_distribute_dataset(
            numbers, tf.distribute.InputOptions(experimental_per_replica_buffer_size=each)
        )
    )
    divided = division.divide(own)
    for _ in range(3):
        divided.get_next()
    until(lambda: last[0] - 3 >= division.batches_beyond, "the batches that lie behind an iterator")
    time.sleep(0.2)
    return division.batches_beyond, last[0] - 3


def race_script_that_begins_slowly(text: str, first_ns: list[int], **settings: Any) -> dict[str, Any]:
    """Race as :func:`race_script`, where the first batch of a pass takes so long in each arm."""
    known: list[Any] = []

    def first_batch_ns(dataset: Any) -> int:
        if all(dataset is not each for each in known):
            known.append(dataset)
        return first_ns[next(number for number, each in enumerate(known) if each is dataset)]

    with patch.object(pass_starts, "time_start_ns", first_batch_ns):
        return race_script(text, **settings)


def batches_of_passes() -> dict[str, int | None]:
    """Return the batches of a pass of datasets that start again in several ways."""
    numbers = tf.data.Dataset.range(10)
    return {
        name: batches_of_pass(dataset, limit_s=60.0)
        for name, dataset in {
            "finite": numbers.shuffle(10).batch(4).prefetch(2),
            "repeated before the batch": numbers.shuffle(10).repeat().batch(4).prefetch(2),
            "repeated batches": numbers.batch(4).repeat(3),
            "shuffled after it was repeated": numbers.repeat().shuffle(5).batch(4),
            "some of what is shuffled for ever": numbers.repeat().shuffle(5).batch(4).take(7),
            "to be counted": numbers.filter(lambda n: n > 3).batch(4),
            "to be counted before the batch": numbers.filter(lambda n: n > 3).repeat().batch(4),
            "without an end": tf.data.Dataset.random(1).batch(4),
        }.items()
    }
