"""What every executor does: bring trials to their end, each on one machine, and their runs into one store."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pipeline_lab.errors import PipelineLabError
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.options.run_options import RunOptions


class SearchStoppedError(PipelineLabError):
    """Somebody asked the search to stop; what it found so far is kept."""


@dataclass(frozen=True)
class Finished:
    """A trial that is over.

    Attributes:
        run_id: Its run, in the store of the search.
        machine: Name of the host that measured it.
        seconds: From its start to its end.
        failure: Why it did not end as planned, as one sentence; empty for one that did.
    """

    run_id: str
    machine: str
    seconds: float
    failure: str = ""


@dataclass(frozen=True)
class Trial:
    """Something to measure.

    Attributes:
        key: Tells it from every other trial of the search.
        options: A run, or a race.
        begun_as: The run that an earlier process of the search began for it; None for one that is new.
    """

    key: str
    options: RunOptions | RaceOptions
    begun_as: str | None = None


class Watch(Protocol):
    """Hears what becomes of trials."""

    def should_stop(self) -> bool:
        """Say whether everything is to end; asked again and again."""
        ...

    def begun(self, trial: Trial, run_id: str) -> None:
        """A run of the store holds the trial from now on, so that readers can follow it."""
        ...

    def ended(self, trial: Trial, finished: Finished) -> None:
        """The trial is over and its run lies in the store."""
        ...


class Executor(Protocol):
    """Measures runs and races. All arms of a race stay on one machine; a machine measures one trial at a time.

    Those that there are also do tasks that need no machine to themselves: ``spread``, as
    :class:`pipeline_lab.analysis.diagnosis.fold.Spread` has it.
    """

    @property
    def machines(self) -> int:
        """How many trials can be measured at the same time."""
        ...

    def check(self, options: RunOptions) -> None:
        """Make sure that every machine has the code and the data before anything is measured.

        Raises:
            PipelineLabError: One has not; the text says which and what is missing.
        """
        ...

    def run(self, trials: Sequence[Trial], watch: Watch) -> None:
        """Bring trials to their end, and tell the watch of each.

        Raises:
            SearchStoppedError: The watch asked to stop; trials under way are cancelled.
        """
        ...

    def close(self) -> None:
        """Give everything back."""
        ...
