"""What a stage of tf.data declares.

A stage is one class in a family module of this room: its options, its lines of source, where it may stand, what it does to
number, size and order of the elements, how often it calls upstream, how it runs and what it costs, the methods and iterators
by which it is recognized, and the advice about it. Everything else asks the declaration, through
:mod:`pipeline_lab.stages.registry`; nothing outside this room knows the stages one by one.

A part without a sensible answer for every stage is abstract: a class that leaves it out cannot be made.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from pipeline_lab.fields import Options
from pipeline_lab.stages.code import Code
from pipeline_lab.stages.stage_values import (
    TAKEN_NS,
    Amount,
    Element,
    Host,
    Neighbors,
    Position,
    Reading,
    Remark,
    Running,
    WorkloadTraits,
    Writing,
)
from pipeline_lab.statistics.reading_steps import OrderStep


class Stage(Options):
    """One stage of a pipeline; see the module."""

    stage: str
    """Its name in the options."""

    methods: ClassVar[frozenset[str]]
    """Methods of ``tf.data.Dataset`` that stand for it in a script; empty where none does by itself."""
    iterators: ClassVar[frozenset[str]]
    """Kinds of iterators that it runs as, one at a time. Empty where all below one that belongs to no other stage is its own."""
    inner_iterators: ClassVar[tuple[frozenset[str], ...]] = ()
    """Those that come below it and are a part of it, the outermost first: kinds of each."""

    once: ClassVar[bool] = False
    """A pipeline has it once at most."""
    at_end: ClassVar[int] = 0
    """Forms add stages before one of a higher number that stands last."""
    placed_after: ClassVar[str | None] = None
    """The stage after which forms add it."""
    labels: ClassVar[Mapping[str, str]] = {"num_parallel_calls": "Parallel calls"}
    left_empty: ClassVar[Mapping[str, str]] = {"crop": "no crop", "count": "without end"}

    is_function: ClassVar[bool] = False
    """It calls a function of the workload for each element."""
    makes_batches: ClassVar[bool] = False
    """It puts single examples into batches; every pipeline needs such a stage."""
    goes_by_length: ClassVar[bool] = False
    """It sorts examples by their length: only workloads that do so offer and keep it."""
    is_part: ClassVar[bool] = False
    """It lets only a part of the data through."""
    wastes_work: ClassVar[bool] = False
    """It takes elements that it does not hand on, so that what was done with them before is lost."""
    stops_early: ClassVar[bool] = False
    """It may leave the data before its end, so that a cache before it is never complete."""
    always_stops: ClassVar[bool] = False
    """It leaves the data before its end whatever there is of it."""
    repeats: ClassVar[bool] = False
    """It starts the data over."""
    fixes_order: ClassVar[bool] = False
    """A shuffle cannot be moved across it without another result."""
    reorders_each_pass: ClassVar[bool] = False
    """It visits the data in a new order each epoch, so that in the end all of it comes."""
    prefetches: ClassVar[bool] = False
    """It prepares later elements while the present one is used, and does nothing else."""
    fuses_with_map: ClassVar[bool] = False
    """TensorFlow's rewrites join it with a map before it."""
    fills: ClassVar[bool] = False
    """What it keeps is complete only after the first epoch."""
    is_elsewhere: ClassVar[bool] = False
    """What is before it runs in other processes, which nobody measures."""
    needs_measuring: ClassVar[bool] = False
    """What it costs cannot be told from a run without it."""
    hides_work: ClassVar[bool] = False
    """What it keeps from running cannot be told from a run with it."""
    vectorized_saves_ns: ClassVar[float] = 0.0
    """Overhead per example that goes when its function sees whole batches, ns (32-pixel images, a 2.5 GHz core)."""
    is_tuned: ClassVar[bool] = False
    """The tuner turns its number of parallel calls, together with those of others."""
    tuned_fields: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Fields of which the tuner tries other values, as JSON."""
    sliders: ClassVar[Mapping[str, str]] = {}
    """Fields for which *What if* shows a slider, with its title."""

    # What it does to the elements

    @abstractmethod
    def batch_size(self, before: int | None) -> int | None:
        """Return the examples in an element after it, on average after buckets; None for single ones."""

    @abstractmethod
    def amount(self, before: Amount, size: int, file_sizes: Sequence[int]) -> Amount:
        """Return how much it hands on in one pass, a filter's share as expected.

        Args:
            before: What comes to it.
            size: Examples in an element that it hands on.
            file_sizes: Records of each file.
        """

    @abstractmethod
    def element(self, before: Element, workload: WorkloadTraits) -> Element:
        """Return what it makes of an element; how many examples there are in it is set already."""

    @abstractmethod
    def order(self, reading: Reading) -> Iterable[OrderStep] | None:
        """Return what it does to the order of the records: no step where it keeps it, None where nobody can tell."""

    @abstractmethod
    def asks_for(self, wanted: int, size: int, left: float) -> int:
        """Return at most how many elements it takes to hand on the wanted ones.

        Args:
            wanted: Elements to hand on.
            size: Examples in an element that comes to it.
            left: Elements that there are at most.
        """

    @abstractmethod
    def taken_for_each(self, before: Amount | None, after: Amount | None) -> float:
        """Return the examples that it takes for each one that it hands on, in the steady part of a run.

        Args:
            before, after: What comes and what goes in one pass over the data, where that is known.
        """

    # How it is written and recognized

    @abstractmethod
    def lines(self, writing: Writing) -> Iterable[str]:
        """Write its lines of ``make_dataset``."""

    def code(self) -> Code:
        """Return what its lines need beside them."""
        return Code()

    def closing_lines(self) -> Iterable[str] | None:
        """Write the lines that return the dataset, for a stage that not even the pipeline's options may follow."""
        return None

    def check(self, standing: Neighbors) -> None:
        """Refuse a place where it cannot stand.

        Raises:
            ValueError: It cannot stand there.
        """

    def check_element(self, element: Element) -> None:
        """Refuse an element that it cannot take.

        Raises:
            ValueError: It cannot take it.
        """

    # How it runs and what it costs

    @abstractmethod
    def running(self, host: Host) -> Running:
        """Return how it will run."""

    def assumed_ns(self, example_bytes: float) -> float:
        """Return the time for an example where it was not measured, ns.

        Args:
            example_bytes: Size of an example at its largest.
        """
        return TAKEN_NS

    def costs_like(self, other: "Stage") -> bool:
        """Say whether another stage of the same name costs the same."""
        return True

    def with_calls(self, calls: int, files: int | None) -> Mapping[str, Any] | None:
        """Return the fields that let it make this many calls at once; None where it cannot, or tunes them already.

        Args:
            calls: At once.
            files: That there are; None where nobody knows.
        """
        return None

    # What it says of the files, where it reads them

    def sizes_in_order(self, file_sizes: Sequence[int]) -> Sequence[int] | None:
        """Return the records of each file that it reads where it reads one after the other; None where it does not."""
        return None

    def can_share_files(self, file_sizes: Sequence[int], shards: int) -> bool:
        """Say whether the files themselves can be divided among the jobs."""
        return False

    # What follows from its options

    @property
    def batches(self) -> tuple[int, ...]:
        """Sizes of the batches that it makes; none where it makes no batches."""
        return ()

    @property
    def copies(self) -> int:
        """Examples that become of one, each with an id of its own."""
        return 1

    @property
    def is_dividable(self) -> bool:
        """Say whether the workers of a service can share what it reads."""
        return True

    @property
    def leaves_out(self) -> bool:
        """Say whether some of the data never comes."""
        return self.is_part

    @property
    def is_endless(self) -> bool:
        """Say whether it hands on elements without end."""
        return False

    @property
    def keeps(self) -> str | None:
        """Where it keeps all elements for later epochs, ``memory`` or ``disk``; None where it does not."""
        return None

    @property
    def maps_inside(self) -> bool:
        """Say whether its iterator holds a map that is a part of it, which looks like one that was fused with it."""
        return False

    @property
    def buffered(self) -> int | None:
        """Elements that it draws from at random; None where it has no such buffer."""
        return None

    @property
    def mixes(self) -> str | None:
        """Name what of it hands on another order, or other elements, each time; None where nothing does."""
        return None

    @property
    def draws(self) -> str | None:
        """Name what its function does at random by its own options; None where it does nothing at random."""
        return None

    def is_random(self, workload: WorkloadTraits) -> bool:
        """Say whether its function gives something else each time it sees the same example."""
        return self.draws is not None

    def holds(self, most: float) -> tuple[str, str, int] | None:
        """Return what it holds once it is full: kind of remark, subject of the sentence, elements; None for nothing fixed.

        Args:
            most: Elements that there are.
        """
        return None

    def remarks(self, place: Position) -> Iterator[Remark]:
        """Say what is worth knowing about it at its place."""
        yield from ()


class OneForOne(Stage):
    """A stage that hands on each element that it takes, in the same order; it may change what is in it."""

    def batch_size(self, before: int | None) -> int | None:
        return before

    def amount(self, before: Amount, size: int, file_sizes: Sequence[int]) -> Amount:
        return before

    def element(self, before: Element, workload: WorkloadTraits) -> Element:
        return before

    def order(self, reading: Reading) -> Iterable[OrderStep] | None:
        return ()

    def asks_for(self, wanted: int, size: int, left: float) -> int:
        return wanted

    def taken_for_each(self, before: Amount | None, after: Amount | None) -> float:
        return 1.0

    def running(self, host: Host) -> Running:
        return Running()
