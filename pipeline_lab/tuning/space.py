"""All configurations around a pipeline: every combination of its knobs that is a valid pipeline."""

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import product

from pipeline_lab.errors import OptionsError, did_you_mean
from pipeline_lab.options.run_options import RunOptions, read_options
from pipeline_lab.tuning.knobs import Knob, argument_knob, find_knobs
from pipeline_lab.workloads.module import ModuleWorkload

MAX_CONFIGURATIONS = 20_000
"""More are not looked at: naming fewer values in ``only`` makes a space smaller."""
START = "start"


@dataclass(frozen=True, eq=False)
class Configuration:
    """One point of the space.

    Attributes:
        name: The values that differ from the start's, or ``start``; no two configurations of a space share it.
        setting: Value of each knob, in the order of the knobs.
        options: The whole job; its name is the configuration's.
    """

    name: str
    setting: tuple[str, ...]
    options: RunOptions

    def distance(self, other: "Configuration") -> int:
        """Count the knobs with different values."""
        return sum(one != another for one, another in zip(self.setting, other.setting, strict=True))


class Space:
    """The configurations around a start."""

    def __init__(self, start: RunOptions, knobs: Sequence[Knob]) -> None:
        self.knobs = tuple(knobs)
        self._document = start.model_dump(mode="json")
        self.start = self._start(start)

    @property
    def size(self) -> int:
        """Combinations of values, valid or not."""
        return math.prod(len(knob.values) for knob in self.knobs)

    def configurations(self) -> Iterator[Configuration]:
        """Return every valid configuration, the start among them.

        Raises:
            OptionsError: There are too many.
        """
        if self.size > MAX_CONFIGURATIONS:
            raise OptionsError(
                f"The search would look at {self.size:,} configurations, more than {MAX_CONFIGURATIONS:,}; "
                "name fewer values of the knobs in `only`, or explore."
            )
        for setting in product(*(knob.values for knob in self.knobs)):
            configuration = self.at(setting)
            if configuration is not None:
                yield configuration

    def at(self, setting: Sequence[str]) -> Configuration | None:
        """Return the configuration with these values, or None if it is not a valid pipeline."""
        turned = [(knob, value) for knob, value in zip(self.knobs, setting, strict=True) if value != knob.now]
        if not turned:
            return self.start
        name = ", ".join(f"{knob.name} {value}" for knob, value in turned)
        document = deepcopy(self._document)
        for knob, value in turned:
            knob.turn(document, value)
        try:
            return Configuration(name, tuple(setting), read_options(document | {"name": name[:200]}))
        except OptionsError:
            return None

    def _start(self, options: RunOptions) -> Configuration:
        named = options.model_copy(update={"name": options.name or START})
        return Configuration(START, tuple(knob.now for knob in self.knobs), named)


def make_space(
    start: RunOptions, *, may_reorder: bool = False, only: Mapping[str, Sequence[str]] | None = None
) -> Space:
    """Return the space around a pipeline.

    Args:
        start: Its center.
        may_reorder: The order of the elements need not be kept.
        only: Values to look at, by the names of the knobs; the others stay as they are. Empty for all.

    Raises:
        OptionsError: There is no such knob or value, or nothing can be changed.
    """
    if isinstance(start.workload, ModuleWorkload):
        return _space_of_arguments(start, start.workload, only or {})
    knobs = find_knobs(start, may_reorder=may_reorder)
    if only:
        knobs = tuple(_narrow(knob, only) for knob in knobs if knob.name in only)
        missing = sorted(set(only) - {knob.name for knob in knobs})
        if missing:
            known = [knob.name for knob in find_knobs(start, may_reorder=may_reorder)]
            meant = did_you_mean(missing[0], known)
            raise OptionsError(f"This pipeline has no knob {missing[0]!r}; it has {', '.join(known)}.{meant}")
    if not knobs:
        raise OptionsError("Nothing about this pipeline can be changed; there is nothing to search.")
    return Space(start, knobs)


def _space_of_arguments(start: RunOptions, workload: ModuleWorkload, only: Mapping[str, Sequence[str]]) -> Space:
    if not only:
        raise OptionsError(f"Specify the arguments to try for {workload.target}, such as --try calls=1,4,8.")
    return Space(start, [argument_knob(workload, name, values) for name, values in only.items()])


def _narrow(knob: Knob, only: Mapping[str, Sequence[str]]) -> Knob:
    wanted = only[knob.name]
    unknown = [value for value in wanted if value not in knob.values]
    if unknown:
        raise OptionsError(f"{knob.name} cannot be {unknown[0]!r}; it can be {', '.join(knob.values)}.")
    values = tuple(value for value in knob.values if value in {*wanted, knob.now})
    return Knob(knob.name, knob.now, values, knob.turn, knob.is_ordered)
