"""The options of a search for a better pipeline: where it starts, what it may spend, what it must respect."""

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, ValidationError, model_validator

from pipeline_lab.errors import OptionsError
from pipeline_lab.fields import Options
from pipeline_lab.options.explaining import explain_problems
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.script_start import ScriptStart

DEFAULT_BUDGET_S = 900.0
DEFAULT_SCRIPT_BUDGET_S = 300.0


class SearchRules(Options):
    """What a search may spend, and what decides; searches differ in what they start from."""

    schema_version: Literal[1] = 1
    kind: Literal["tune"] = "tune"
    name: str = Field("", max_length=200)
    budget_s: float = Field(DEFAULT_BUDGET_S, gt=0, le=7 * 86_400)
    """Time that runs and races may take together, s."""
    max_configurations: int = Field(8, ge=2, le=1000)
    """Configurations that are measured at most, the start among them."""
    may_reorder: bool = False
    """Also try pipelines that hand on elements in another order each time (``deterministic = False``)."""
    margin_percent: float = Field(3.0, gt=0, le=50)
    """Smallest difference that matters; among pipelines that are closer than this the cheapest wins."""
    block_steps: int = Field(10, ge=2, le=100_000)
    """Measured steps of one arm in one round of a race."""
    pairs: int = Field(30, ge=6, le=500)
    """Rounds of the last race, in which the winner meets the start."""
    seed: int = Field(0, ge=0, le=2**31 - 1)
    ray: str | None = Field(None, min_length=1, max_length=500)
    """Address of the Ray cluster whose machines measure; None for this machine."""
    gpus_per_trial: int | None = Field(None, ge=1, le=1024)
    """GPUs that a trial is given on a machine of the cluster, with as large a share of its cores; None for whole machines."""

    labels: ClassVar = {"block_steps": "Steps per block", "margin_percent": "Matters from (%)"}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.gpus_per_trial is not None and self.ray is None:
            raise ValueError("gpus_per_trial divides up the machines of a cluster; name the cluster with ray")
        return self

    @property
    @abstractmethod
    def label(self) -> str: ...

    @property
    @abstractmethod
    def start_label(self) -> str:
        """What the search starts from."""

    def to_json(self) -> str:
        return self.model_dump_json(indent=2) + "\n"


class TuneOptions(SearchRules):
    """A search: profile, predict, race what is predicted best, and go on from the winner."""

    start: RunOptions
    max_memory_mb: int | None = Field(None, ge=1, le=100_000_000)
    """Memory that buffers and caches may hold, MB; None for half of the machine's."""
    max_threads: int | None = Field(None, ge=1, le=4096)
    """Threads that may read and map at the same time; None for no limit."""
    only: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Search only these values of these knobs, such as ``{"prefetch": ["2", "8"]}``; empty for all that fit."""
    explore: bool = False
    """Let Optuna propose configurations, for pipelines that the model cannot predict."""

    @property
    def label(self) -> str:
        return self.name or f"tune {self.start.label}"[:200]

    @property
    def start_label(self) -> str:
        return self.start.label


class ScriptTuneOptions(ScriptStart, SearchRules):
    """A search for better input of a script: record it, prove changes on its own data, race them inside its training."""

    budget_s: float = Field(DEFAULT_SCRIPT_BUDGET_S, gt=0, le=7 * 86_400)
    """Time for recording, proofs and races together, s."""
    pairs: int = Field(60, ge=6, le=500)
    """Rounds of the last race; it ends as soon as the answer is known."""
    changes: tuple[Annotated[str, Field(min_length=1, max_length=500)], ...] = ()
    """Make these changes, instead of what helps."""
    run: str | None = Field(None, max_length=4096)
    """Folder of a recorded run of the script; None to record one."""
    races: bool = True
    """Race what is proved; without, all of it is proposed."""

    @property
    def label(self) -> str:
        return self.name or f"tune {self.command}"[:200]

    @property
    def start_label(self) -> str:
        return self.command


def is_script_tune(document: dict[str, Any]) -> bool:
    """Say whether a search's options are those of one for better input of a script."""
    return "script" in document


def read_script_tune(document: dict[str, Any]) -> ScriptTuneOptions:
    """Validate the options document of a search for better input of a script.

    Raises:
        OptionsError: It holds something that is not allowed; the text names each place.
    """
    try:
        return ScriptTuneOptions.model_validate(document)
    except ValidationError as error:
        raise OptionsError(explain_problems(error, ScriptTuneOptions)) from None


def read_tune_options(document: dict[str, Any]) -> TuneOptions:
    """Validate the options document of a search.

    Raises:
        OptionsError: It holds something that is not allowed; the text names each place.
    """
    try:
        return TuneOptions.model_validate(document)
    except ValidationError as error:
        raise OptionsError(explain_problems(error, TuneOptions)) from None
