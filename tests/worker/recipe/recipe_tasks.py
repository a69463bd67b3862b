"""What is noted of :mod:`tests.worker.recipe.made_datasets`; ``python -m tests.worker.recipe.recipe_tasks`` serves it.

What TensorFlow does without notes is only to be seen in a process in which nothing has asked for them yet.
"""

import concurrent.futures
import contextlib
import copy
import gc
import inspect
import itertools
import linecache
import pickle
import traceback
import weakref
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from pipeline_lab.capture.script.job_threads import is_hooked
from pipeline_lab.capture.script.live_iterators import note_new_iterators
from pipeline_lab.capture.script.noted_datasets import note_new_datasets
from pipeline_lab.pipeline.recipe import DatasetCall, Recipe
from pipeline_lab.worker.recipe import wrapping
from pipeline_lab.worker.recipe.notes import Ledger, Note, note_of
from pipeline_lab.worker.recipe.replaying import CannotReplayError, ReplayedCall, replay
from tests.support.warm_worker import serve
from tests.worker.recipe import made_datasets

RANDOM = ("resampled", "images", "texts", "csv_files", "listed")


def note_made_datasets() -> dict[str, Any]:
    """Return what is noted of a script's datasets, and what they are with and without notes."""
    assert not is_hooked(tf.data.Dataset, "__init__"), "nothing is noted yet"
    before, fingerprints = _look_at_all()
    signatures, error = _signatures(), _error()
    note_new_iterators()
    note_new_datasets()
    noted = {name: _note(name) for name in made_datasets.MADE}
    seen, fingerprints_noted = _look_at_all()
    made = {name: {**noted[name], **seen[name]} for name in made_datasets.MADE}
    for name, (elements, kind) in ((name, each.values()) for name, each in before.items()):
        made[name] |= {"elements_before": elements, "kind_before": kind}
    return {
        "made": made,
        "fingerprints_before": fingerprints,
        "fingerprints": fingerprints_noted,
        "snapshots": len(list((made_datasets.FOLDER / "snapshot").iterdir())),
        "methods": [name for name, given in vars(tf.data.Dataset).items() if _makes_datasets(name, given)],
        "signatures_before": signatures,
        "signatures": _signatures(),
        "error_before": error,
        "error": _error(),
        "uses": _uses(),
        "carried_over": _carried_over(),
        "python_places": _python_places(),
        "in_threads": _in_threads(),
        "copied": _copied(),
        "after_errors": _after_errors(),
        "freed": _freed(),
        "replayed": {name: _replay(name) for name in made_datasets.MADE if name != "distributed"},
        "edited": _edited(),
    }


def _makes_datasets(name: str, given: Any) -> bool:
    function = inspect.unwrap(getattr(given, "__func__", given)) if not isinstance(given, property) else None
    returns = getattr(function, "__annotations__", {}).get("return")
    return not name.startswith("_") and "DatasetV2" in str(returns) and name != "apply"


def _look_at_all() -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Make each dataset twice; return what the first one holds, and the fingerprint of both."""
    seen, fingerprints = {}, {}
    for name, (make, _) in made_datasets.MADE.items():
        dataset = make()
        seen[name] = _look(name, dataset)
        fingerprints[name] = _fingerprint(name, dataset, make())
    return seen, fingerprints


def _look(name: str, dataset: Any) -> dict[str, Any]:
    elements = [str(element) for element in itertools.islice(dataset, 3)]
    kind = f"{type(dataset).__name__} {getattr(dataset, 'element_spec', '')}"
    return {"elements": len(elements) if name in RANDOM or "Dataset" in str(elements) else elements, "kind": kind}


def _fingerprint(name: str, *made: Any) -> str:
    """Return what snapshots and tf.data's service know a dataset by; empty where it differs each time."""
    found = {str(_read_fingerprint(dataset)) for dataset in made}
    return found.pop() if len(found) == 1 and name not in RANDOM else ""


def _read_fingerprint(dataset: Any) -> Any:
    return dataset.fingerprint() if hasattr(dataset, "fingerprint") else None


@contextlib.contextmanager
def _ledger() -> Iterator[Ledger]:
    """Note into a new ledger."""
    kept, wrapping.ledger = wrapping.ledger, Ledger()
    try:
        yield wrapping.ledger
    finally:
        wrapping.ledger = kept


def _note(name: str) -> dict[str, Any]:
    function, expected = made_datasets.MADE[name]
    dataset = function()
    with _ledger() as ledger:
        iter(dataset)
        recipe = ledger.recipe()
    calls = list(recipe.upstream(recipe.uses[-1].call))
    return {
        "expected": list(expected),
        "methods": [call.method for call in calls],
        "texts": [call.text for call in calls],
        "lines": [call.place and linecache.getline(call.place.file, call.place.name_line) for call in calls],
        "nodes": [call.nodes[-1].partition(":")[0] if call.nodes else "" for call in calls],
    }


def _signatures() -> dict[str, str]:
    given = {name: getattr(tf.data.Dataset, name) for name in dir(tf.data.Dataset) if not name.startswith("_")}
    given |= {"TFRecordDataset": tf.data.TFRecordDataset, "py_function": tf.py_function}
    return {name: f"{each.__module__} {inspect.signature(each)}" for name, each in given.items() if callable(each)}


def _error() -> dict[str, Any]:
    try:
        tf.data.Dataset.range(2).batch("many")
    except Exception as error:
        return {"text": f"{type(error)} {error}", "frames": len(traceback.extract_tb(error.__traceback__))}
    raise AssertionError("batch takes a word")


def _uses() -> list[tuple[str, str, str, list[str]]]:
    with _ledger() as ledger:
        made_datasets.read_in_all_ways()
        recipe = ledger.recipe()
    return [(use.role, use.text, recipe.call(use.call).method, _python(recipe, use.call)) for use in recipe.uses]


def _carried_over() -> dict[str, dict[str, str | None]]:
    found = {}
    for name, fit in made_datasets.fit_in_epochs().items():
        with _ledger() as ledger:
            fit()
            found[name] = {use.role: use.carried_over for use in ledger.recipe().uses}
    return found


def _python(recipe: Recipe, number: int) -> list[str]:
    calls: Iterator[DatasetCall] = recipe.upstream(number)
    return [f"{part.kind} {part.function.name}" for call in calls for part in call.python]


def _python_places() -> list[tuple[str, int]]:
    note = note_of(made_datasets.numbers().map(made_datasets.through_made_python))
    return [(part.function.file, part.function.line) for part in note.python]


def _in_threads() -> list[list[str]]:
    """Make datasets in several threads at a time."""

    def make(number: int) -> list[str]:
        dataset = made_datasets.numbers().map(lambda each: each + number).batch(2)
        return [note.method for note in note_of(dataset).upstream()]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return list(pool.map(make, range(8)))


def _copied() -> list[list[int]]:
    """Copy a dataset, and its note with it."""
    dataset = made_datasets.numbers().take(2)
    other = copy.copy(dataset)
    assert copy.deepcopy(note_of(dataset)) is note_of(other)
    assert pickle.loads(pickle.dumps(note_of(dataset))) is None
    return [[int(each) for each in one] for one in (dataset, other)]


def _after_errors() -> int:
    """Fail inside a function of the user's and at an argument; return the calls that are left open."""
    for wrong in (lambda: made_datasets.numbers().map(lambda _: 1 // 0), lambda: tf.data.TFRecordDataset(5)):
        with contextlib.suppress(Exception):
            wrong()
    return len(wrapping.stack.notes)


def _freed() -> bool:
    """Say whether nothing keeps a dataset that the script has dropped."""
    dataset = made_datasets.numbers().map(made_datasets.add_one)
    iter(dataset)
    kept = weakref.ref(dataset)
    del dataset
    gc.collect()
    return kept() is None


def _replay(name: str) -> dict[str, Any]:
    """Make a dataset again without a change."""
    dataset = made_datasets.MADE[name][0]()
    try:
        again = replay(dataset, {})
    except CannotReplayError as error:
        return {"error": str(error)}
    notes = [[note.method for note in note_of(each).upstream()] for each in (dataset, again)]
    sites = [[note.site and note.site.key for note in note_of(each).upstream()] for each in (dataset, again)]
    elements = [str(element) for element in itertools.islice(again, 3)]
    return {
        "is_other": again is not dataset,
        "has_notes": notes[0] == notes[1] and sites[0] == sites[1],
        "elements": len(elements) if name in RANDOM or "Dataset" in str(elements) else elements,
    }


def _edited() -> dict[str, Any]:
    """Make datasets again with changes, and look at what that does."""

    def numbers_of(dataset: Any) -> list[int]:
        return [int(each) for each in dataset]

    tf.keras.utils.set_random_seed(3)
    expected = int(tf.random.uniform([], maxval=10**6, dtype=tf.int32))
    tf.keras.utils.set_random_seed(3)
    mapped = made_datasets.numbers().map(made_datasets.add_one)
    last = mapped.take(3)
    note = note_of(mapped)
    inner = (
        made_datasets.numbers()
        .take(2)
        .flat_map(lambda number: tf.data.Dataset.from_tensors(number).repeat(2).map(made_datasets.add_one))
    )
    repeat = next(each for each in note_of(inner).made if each.method == "repeat")
    both = tf.data.Dataset.zip({"a": last, "b": (mapped,)})
    parallel = replay(last, {note: lambda call: call.again(num_parallel_calls=2)})
    shuffled = replay(last, {note_of(last): lambda call: call.inputs[0].shuffle(8)})
    return {
        "kind": type(parallel._input_dataset).__name__,
        "script's": type(last._input_dataset).__name__,
        "given": note_of(parallel).inputs[0].arguments.get("num_parallel_calls"),
        "left out": numbers_of(replay(last, {note: lambda call: call.inputs[0]})),
        "appended": type(replay(last, {note_of(last): lambda call: call.again().prefetch(2)})).__name__,
        "shuffled": sorted(numbers_of(shuffled)),
        "inside": [numbers_of(inner), numbers_of(replay(inner, {repeat: lambda call: call.again(count=1)}))],
        "in two places": [
            [int(each["a"]), int(each["b"][0])] for each in replay(both, {note: lambda call: call.inputs[0]})
        ],
        "seed": [int(tf.random.uniform([], maxval=10**6, dtype=tf.int32)), expected],
        "refused": [_refused(last, edits) for edits in _wrong_edits(note)],
        "unknown": _refused(unknown := made_datasets.experimental(), {note_of(unknown).inputs[0]: ReplayedCall.again}),
        "array": _refused(made_datasets.slices(), {}),
        "changed array": _refused(slices := made_datasets.slices(), {note_of(slices): ReplayedCall.again}),
    }


def _wrong_edits(note: Note) -> list[dict[Note, Any]]:
    return [{Note("elsewhere", None): ReplayedCall.again}, {note: lambda call: call.again(calls=2)}]


def _refused(dataset: Any, edits: dict[Note, Any]) -> str:
    try:
        replay(dataset, edits)
    except CannotReplayError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    serve(globals().__getitem__)
