"""Where in the pipeline an event belongs, from its name and its thread alone.

An iterator's event is named after its whole way from the root: ``Iterator::Root::Prefetch::ForeverRepeat[1]::BatchV2``.
The indices tell iterators of one stage apart (epochs, files, slots of a cycle); without them the way is the stage's
place. Only what lies below the inputs of a zip or a concatenation keeps theirs: these are datasets of their own.
"""

import re
from collections.abc import Iterable
from functools import cached_property, lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.event_names import REMEMBERED_NAMES, iterator_way
from pipeline_lab.data_classes import dataclass

NO_STAGE = -1

_INDEX = re.compile(r"\[\d+\]")
_LAST_INDEX = re.compile(r"\[\d+\]$")
_BELOW = re.compile(r"(?:\[(\d+)\])?::")
_BRANCHING = ("Zip[", "Concatenate[")
_INNER = re.compile(r"(\w+)Impl")
_DIGITS = 9
"""Of an input's number; a damaged name may have more than Python turns into a number."""
MAX_DEPTH = 200
"""What lies deeper counts as the stage there; a chain of datasets that are concatenated nests once for each."""


@dataclass(frozen=True)
class IteratorPlace:
    """One stage's place.

    Attributes:
        path: Kinds from the root down, joined by ``::``.
        parent: Index of the place above, or None.
    """

    path: str
    parent: int | None

    @property
    def name(self) -> str:
        return _INDEX.sub("", self.path.rsplit("::", 1)[-1])


@dataclass(frozen=True, eq=False)
class IteratorPlaces:
    """All stages that a trace's names speak of, and the one that each name belongs to.

    Attributes:
        places: In the order of the tree, each parent before its children.
        of_name: Index of each name's place, ``NO_STAGE`` for what is no iterator's, shape (n_names,).
        of_shared_name: The same for events on the threads of a multi-device iterator, which reads a pipeline of its
            own and deals its elements out to what each replica reads.
    """

    places: tuple[IteratorPlace, ...]
    of_name: NDArray[np.int32]
    of_shared_name: NDArray[np.int32]

    @cached_property
    def above(self) -> NDArray[np.int32]:
        """Index of the place above each one, ``NO_STAGE`` for a root."""
        return np.array([NO_STAGE if place.parent is None else place.parent for place in self.places], np.int32)


def is_shared(line_name: str) -> bool:
    """Say whether a thread works for a multi-device iterator."""
    return line_name.startswith("tf_data_multi_device_iterator")


def find_iterator_places(own: Iterable[str | None], shared: Iterable[str | None]) -> IteratorPlaces:
    """Find the stages behind a plane's names.

    Args:
        own: Each name of the plane, None where it does not occur outside of a multi-device iterator's threads.
        shared: Each name of the plane, None where it does not occur on these threads.
    """
    paths = [name and place_of(name) for name in own]
    generator = min((path for path in paths if path and path.endswith("::Generator")), key=len, default=None)
    above = f"{generator}::" if generator else ""
    shared_paths = [path and above + path for path in (name and place_of(name) for name in shared)]
    places = order_places(path for path in (*paths, *shared_paths) if path)
    number = {place.path: index for index, place in enumerate(places)}
    return IteratorPlaces(places, _numbers(number, paths), _numbers(number, shared_paths))


@lru_cache(REMEMBERED_NAMES)
def place_of(name: str) -> str | None:
    """Return the path of the stage that an event belongs to; None if the event is no iterator's."""
    way = iterator_way(name)
    if way is None:
        return None
    parts = way.split("::")[:MAX_DEPTH]
    # A cache's inner iterator is named as if it lay beside the cache that calls it.
    parts = [_INNER.sub(r"\1::\g<0>", part) for part in parts]
    path = "::".join(part if part.startswith(_BRANCHING) else _INDEX.sub("", part) for part in parts)
    return _LAST_INDEX.sub("", path)


def order_places(paths: Iterable[str]) -> tuple[IteratorPlace, ...]:
    """Return the places of these paths and of everything above them: a stage may wait and never return in a trace.

    Those below one place come by the number of the input that they lie in, then as they came.
    """
    below: dict[str, dict[str, None]] = {"": {}}
    for path in paths:
        above = ""
        for place in _way(path):
            below[above].setdefault(place)
            below.setdefault(place, {})
            above = place
    places: list[IteratorPlace] = []
    ahead: list[tuple[str, int | None]] = [(root, None) for root in reversed(below[""])]
    while ahead:
        path, parent = ahead.pop()
        number = len(places)
        places.append(IteratorPlace(path, parent))
        children = sorted(below[path], key=partial(_input_number, above=path))
        ahead += [(child, number) for child in reversed(children)]
    return tuple(places)


def _way(path: str) -> list[str]:
    """Return the path of each place from the root down to this one."""
    found = [path]
    while above := place_above(found[-1]):
        found.append(above)
    return found[::-1]


def _input_number(path: str, above: str) -> int:
    """Return which input of the place above a place lies in; 0 where inputs have no numbers."""
    below = _BELOW.match(path, len(above))
    return int(below[1][:_DIGITS]) if below and below[1] else 0


def place_above(path: str) -> str:
    """Return the path of the place that takes this one's elements, ``Zip`` for ``Zip[1]::Map``; empty for a root."""
    return _LAST_INDEX.sub("", path.rpartition("::")[0])


def is_upstream(path: str, of: str) -> bool:
    """Say whether a place lies below another one, which takes its elements in the end."""
    return path.startswith(of) and _BELOW.match(path, len(of)) is not None


def _numbers(number: dict[str, int], paths: list[str | None]) -> NDArray[np.int32]:
    return np.fromiter((number[path] if path else NO_STAGE for path in paths), np.int32, len(paths))
