"""Read a dataset of a script twice: digests of its elements, how often each example comes, the sizes of its stages."""

import contextlib
import gc
import hashlib
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline_lab.capture.script_sample.leaving import leave_script
from pipeline_lab.pipeline.samples import FAR_ENOUGH, PASSES, Sample, SampleRequest, StageSize

if TYPE_CHECKING:
    from pipeline_lab.worker.recipe.notes import UseKey
    from pipeline_lab.worker.recipe.places import CallSite

KEPT_BYTES = 32_000_000
"""Values of elements that are kept, for a comparison of numbers that are not the same bits."""
UNKNOWN_LENGTH = -2
"""What TensorFlow says of a dataset whose length is not known; -1 is one without end."""
COUNTING_S, COUNTED_AT_ONCE = 5.0, 1000
"""Time to count the elements of each stage whose length is not known, and how many are counted between two looks at the clock."""
ONE_FOR_ONE = frozenset({"cache", "enumerate", "map", "prefetch", "scan", "shuffle", "with_options"})
"""Methods whose dataset has as many elements as the one that it is made of."""
OTHER_ELEMENTS, OTHER_S = 50, 5.0
"""How far other datasets are read that a change touches as well."""
MOST_READ_BEFORE = 100
"""Datasets that are kept for a comparison though the script has dropped them."""
MEASURED = 8
"""Elements of each stage that are measured."""
OTHER_DATASET = "at {place} the script reads another dataset than it did when it was recorded"

INSIDE_FUNCTION = "the dataset read at {place} is made inside a tf.function, where nobody can read it twice"


class SampleReader:
    """Reads the dataset of one use, when it comes.

    Args:
        request: What is wanted.
        begin_pass: Called with the number of each pass over it.
    """

    def __init__(self, request: SampleRequest, begin_pass: Callable[[int], None] = lambda _: None) -> None:
        from pipeline_lab.worker.recipe.notes import take_number

        self._request, self._begin_pass = request, begin_pass
        self._met: dict[UseKey, tuple[str, str, int]] = {}
        self.sample: Sample | None = None
        self.refusal: Exception | None = None
        """Why there is none, where the script came to the place."""
        self._is_reading = False
        self._read_before: list[Any] = []
        self._begun = take_number()
        gc.freeze()  # what is there already is none of the script's, and there is much of it to look through

    def note(self, dataset: Any, key: "UseKey", site: "CallSite | None") -> None:
        """Note that a dataset is about to be read.

        Args:
            dataset: Of the script.
            key: Tells this use apart from others.
            site: Where it is read.

        Raises:
            Reached: It was the one, and has been read, or is another one than it was.
        """
        if self._is_reading:
            return
        is_compared = self._request.others or self._request.numbers
        is_new = not any(each is dataset for each in self._read_before)
        if is_compared and is_new and len(self._read_before) < MOST_READ_BEFORE:
            self._read_before.append(dataset)  # a line that looks at a batch or two keeps none
        wanted = self._request.reading
        if key not in self._met:
            self._met[key] = (key.role, *line_of(site, key.role))
        there = [each for each, place in self._met.items() if place == (wanted.role, wanted.file, wanted.line)]
        if key not in there or there.index(key) != wanted.turn:
            return
        self._is_reading = True
        try:
            self.sample = self._read(dataset)
        except Exception as error:
            self.refusal = error
        leave_script()

    def _read(self, dataset: Any) -> Sample:
        import tensorflow as tf

        wanted = self._request.reading
        if not self._request.texts and wanted.made_at and list(wanted.made_at) != _made_at(dataset):
            raise RuntimeError(OTHER_DATASET.format(place=wanted))
        if not hasattr(dataset._variant_tensor, "numpy"):
            raise RuntimeError(INSIDE_FUNCTION.format(place=wanted))
        with tf.init_scope():  # it may be a function that is about to read it
            return self._read_in_python(dataset)

    def _read_in_python(self, dataset: Any) -> Sample:
        states = RandomStates(self._request)
        read = read_sample(dataset, self._request, self._begin_pass, states.leave_off)
        found = _with_others(read, dataset, self._request, self._begun, states)
        found = replace(found, steps_at_once=_steps_at_once(), spec=str(dataset.element_spec))
        return replace(found, stages=tuple(measure_stages(dataset))) if self._request.measures else found


def line_of(site: "CallSite | None", role: str) -> tuple[str, int]:
    """Return the file and the first line of an expression, as the recipe has them."""
    from pipeline_lab.worker.recipe.places import write_site

    return ("", 0) if site is None else (site.file, write_site(site, role).place.line)


def _made_at(dataset: Any) -> list[str]:
    """Return where the calls stand that make a dataset, sorted."""
    from pipeline_lab.worker.recipe.notes import note_of

    return sorted(set(_places_of(note_of(dataset))))


def _steps_at_once() -> int:
    """Return how many steps one call of the training runs that is about to read, by Keras' frames on the stack."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        steps = getattr(frame.f_locals.get("self"), "steps_per_execution", None)
        if isinstance(steps, Integral):
            return int(steps)
        frame = frame.f_back
    return 1


class RandomStates:
    """The states of random generators: Python's and NumPy's own, and those in variables, such as of Keras' layers.

    How far a pass is read in its time is chance, and so is how far stages have run ahead. So one that is broken off leaves the
    states where they would be after a number of draws that no pass comes to.

    Args:
        request: Where it asks for no seeds, states are left to chance.
    """

    def __init__(self, request: SampleRequest) -> None:
        self._left, self._is_seeded = 0, request.is_seeded
        self._begun = [*_random_states()] if request.is_seeded else []

    def leave_off(self) -> None:
        """Set the states, once an iterator is gone that has not come to its end."""
        self._left += 1
        if self._is_seeded:
            _seed_python(self._left)
            _seed_numpy(self._left)
        for variable, value, counter in self._begun:
            value = value.copy()
            value[counter] += self._left * MANY_DRAWS
            variable.assign(value)


MANY_DRAWS = 1 << 20
_seed_python, _seed_numpy = random.seed, np.random.seed
"""Themselves: while a script's draws are watched, the modules hold others, which note that the script sets its seeds."""


def _random_states() -> Iterator[tuple[Any, Any, int]]:
    """Yield the variables, their values and which of these counts the draws."""
    import keras
    import tensorflow as tf

    counters = {keras.random.SeedGenerator: 1, tf.random.Generator: 0}
    for each in gc.get_objects():
        for kind in counters.keys() & set(type(each).__mro__):
            variable = each.state
            yield variable, np.array(variable), counters[kind]


def read_sample(
    dataset: Any,
    request: SampleRequest,
    begin_pass: Callable[[int], None] = lambda _: None,
    leave_off: Callable[[], None] = lambda: None,
) -> Sample:
    """Read a dataset, each time to its end or as far as requested; what the first pass leaves of the time is the second's.

    Args:
        dataset: Of the script.
        request: How far to read.
        begin_pass: Called with the number of each pass before it begins.
        leave_off: Called after each pass that has not come to its end.
    """
    begun_s = time.monotonic()
    passes: list[list[str]] = []
    rows: list[dict[str, int]] = []
    ended: list[bool] = []
    sizes: list[int] = []
    values = _Values(Path(request.values))
    for number in range(request.passes):
        begin_pass(number)
        digests: list[str] = []
        examples: Counter[str] = Counter()
        has_ended = True
        until_s = begun_s + request.seconds * (number + 1) / request.passes
        for element in dataset:
            parts = list(_arrays(element))
            whole, of_examples = _digests(parts)
            digests.append(whole)
            examples.update(of_examples)
            if number == 0:
                sizes.append(sum(map(_length, parts)))
            values.keep(number, len(digests) - 1, parts)
            if len(digests) >= request.elements or (time.monotonic() > until_s and len(digests) >= FAR_ENOUGH):
                has_ended = False
                break
        if not has_ended:
            leave_off()
        passes.append(digests)
        rows.append(dict(examples))
        ended.append(has_ended)
    values.write()
    return Sample(tuple(map(tuple, passes)), tuple(rows), tuple(ended), sum(sizes))


def _with_others(found: Sample, dataset: Any, request: SampleRequest, begun: int, states: RandomStates) -> Sample:
    """Add the other datasets that were asked for; they are numbered in the order in which the script made them.

    Args:
        found: Of the dataset that was to be read.
        dataset: It.
        request: What is wanted.
        begun: Number below those in the names of the script's datasets.
        states: Of random generators.
    """
    if not request.others and not request.numbers:
        return found
    import tensorflow as tf

    from pipeline_lab.worker.recipe.notes import NOTE, Note, note_of

    gc.collect()
    kind = tf.data.Dataset  # by its bases: an abstract class takes long to ask about each of a million objects
    datasets = [each for each in gc.get_objects() if kind in type(each).__mro__]
    live = [each for each in datasets if isinstance(vars(each).get(NOTE), Note)]
    taken = {id(below) for each in live for below in each._inputs()} | {id(each) for each in _behind(dataset)}
    ends = [(note_of(each), each) for each in live if id(each) not in taken]
    ends = [end for end in ends if end[0].graph is None and _made_as(end[0]) > begun]
    ends.sort(key=lambda end: _made_as(end[0]))
    short = replace(
        request,
        elements=OTHER_ELEMENTS,
        seconds=OTHER_S,
        passes=PASSES,
        others=(),
        numbers=(),
        values=f"{request.values}.npz",
    )
    others = []
    for number, (note, each) in enumerate(ends):
        places = tuple(_places_of(note))
        if number in request.numbers or not set(request.others).isdisjoint(places):
            read = read_sample(each, short, leave_off=states.leave_off)
            others.append(replace(read, places=places, number=number))
    return replace(found, others=tuple(others), made=len(ends))


def _places_of(note: Any) -> Iterator[str]:
    """Yield where the calls of a dataset stand, the last one first."""
    from pipeline_lab.worker.recipe.places import write_site

    for each in note.upstream():
        if each.site is not None:
            yield str(write_site(each.site, each.method).place)


def _behind(dataset: Any) -> Iterator[Any]:
    """Yield a dataset and all that it is made of."""
    yield dataset
    for below in dataset._inputs():
        yield from _behind(below)


def _made_as(note: Any) -> int:
    """Return the number of a dataset's name, which grows."""
    number = note.nodes[0].rpartition(":")[2] if note.nodes else ""
    return int(number) if number.isdigit() else -1


def _arrays(element: Any) -> Iterator[Any]:
    import tensorflow as tf

    for part in tf.nest.flatten(element, expand_composites=True):
        value = part.numpy() if hasattr(part, "numpy") else part
        is_text = isinstance(value, bytes | str)  # of which NumPy would drop zeros at the end
        yield np.asarray(value, dtype=object if is_text else None)


def _digests(arrays: list[Any]) -> tuple[str, list[str]]:
    """Return a digest of an element, and one for each example of a batch; what is no batch is one example itself."""
    kinds = [f"{array.dtype}{array.shape}".encode() for array in arrays]
    lengths = {array.shape[0] if array.ndim else None for array in arrays}
    if len(lengths) != 1 or None in lengths:
        whole = _digest(kinds, arrays)
        return whole, [whole]
    of_each = [f"{array.dtype}{array.shape[1:]}".encode() for array in arrays]
    count = next(iter(lengths)) or 0
    examples = [_digest(of_each, [array[index : index + 1] for array in arrays]) for index in range(count)]
    return _shortened(hashlib.sha256(b"".join([*kinds, "".join(examples).encode()]))), examples


def _digest(kinds: list[bytes], arrays: list[Any]) -> str:
    digest = hashlib.sha256()  # most processors compute it in hardware, twice as fast as BLAKE2
    for kind, array in zip(kinds, arrays, strict=True):
        digest.update(kind)
        digest.update(_bytes_of(array))
    return _shortened(digest)


def _bytes_of(array: Any) -> Any:
    """Return what an array holds, without a copy where it lies in a row."""
    if array.dtype.hasobject:
        return b"".join(len(text).to_bytes(8, "little") + text for text in _texts(array))
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _length(array: Any) -> int:
    """Return the bytes of what an array holds."""
    return sum(map(len, _texts(array))) if array.dtype.hasobject else int(array.nbytes)


def _texts(array: Any) -> Iterator[bytes]:
    return (each if isinstance(each, bytes) else str(each).encode() for each in array.ravel().tolist())


def _shortened(digest: Any) -> str:
    return str(digest.hexdigest()[:24])


class _Values:
    """The first elements themselves, in a file."""

    def __init__(self, path: Path) -> None:
        self._path, self._bytes = path, [0] * PASSES
        self._kept: dict[str, Any] = {}

    def keep(self, number: int, index: int, parts: list[Any]) -> None:
        self._bytes[number] += sum(part.nbytes for part in parts)
        if self._bytes[number] <= KEPT_BYTES // PASSES and not any(part.dtype.hasobject for part in parts):
            self._kept |= {f"{number}-{index}-{at}": part for at, part in enumerate(parts)}

    def write(self) -> None:
        np.savez(self._path, **self._kept)


def measure_stages(dataset: Any) -> Iterator[StageSize]:
    """Measure the elements of each dataset that this one is made of, in the order of :meth:`Recipe.upstream` without what functions return."""
    every = {id(each): each for each in _behind(dataset)}
    kept = {
        id(below) for each in every.values() if _method(each) == "cache" for below in _behind(each) if below is not each
    }
    seen: set[int] = set()
    counts: dict[int, int | None] = {}
    left = [dataset]
    while left:
        one = left.pop(0)
        if id(one) in seen:
            continue
        note = _note(one)
        if note is not None and id(note) not in seen:
            yield StageSize(note.method, *_size(one, counts), note.stateful, str(one.element_spec), id(one) in kept)
        seen |= {id(one), id(note)}
        left = [*_in_order(one), *left]


def _in_order(dataset: Any) -> list[Any]:
    """Return what a dataset is made of in the order of its call's arguments; TensorFlow sorts a dictionary's by their names."""
    note = _note(dataset)
    places = {} if note is None else {id(each): place for place, each in enumerate(note.inputs)}
    return sorted(dataset._inputs(), key=lambda below: places.get(id(_note(below)), len(places)))


def _note(dataset: Any) -> Any:
    from pipeline_lab.worker.recipe.notes import NOTE

    return vars(dataset).get(NOTE)


def _method(dataset: Any) -> str:
    note = _note(dataset)
    return "" if note is None else str(note.method)


def _size(dataset: Any, counts: dict[int, int | None]) -> tuple[float | None, int | None]:
    """Return bytes of an element on average, and how many there are; None where nobody can tell at once. ``counts`` as for :func:`_count`."""
    with contextlib.suppress(Exception):
        import tensorflow as tf

        fixed = 0
        for spec in tf.nest.flatten(dataset.element_spec, expand_composites=True):
            count = spec.shape.num_elements() if spec.dtype != tf.string else None
            if count is None:
                break
            fixed += count * spec.dtype.size
        else:
            return float(fixed), _count(dataset, counts)
        taken = [sum(map(_length, _arrays(each))) for each in dataset.take(MEASURED)]
        return (sum(taken) / len(taken) if taken else None), _count(dataset, counts)
    return None, None


def _count(dataset: Any, counts: dict[int, int | None]) -> int | None:
    """Return how many elements a dataset has; files are read for it, as long as that takes no time.

    Args:
        dataset: Of the script.
        counts: Those that were counted before, by the identity of the dataset; this one is added.
    """
    if id(dataset) not in counts:
        counts[id(dataset)] = _count_anew(dataset, counts)
    return counts[id(dataset)]


def _count_anew(dataset: Any, counts: dict[int, int | None]) -> int | None:
    told = int(dataset.cardinality())
    if told != UNKNOWN_LENGTH:
        return told if told >= 0 else None
    if _method(dataset) in ONE_FOR_ONE:
        (below,) = dataset._inputs()
        return _count(below, counts)
    until_s, found = time.monotonic() + COUNTING_S, 0
    for some in dataset.map(lambda *_: True).batch(COUNTED_AT_ONCE):
        if time.monotonic() > until_s:
            return None
        found += len(some)
    return found
