"""The options of a race: its arms, and when it may stop.

``SCHEMA_VERSION`` of the document is that of a run's options; ``kind`` distinguishes the two.
"""

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, TypeVar

from pydantic import Field, ValidationError, ValidationInfo, model_validator

from pipeline_lab.errors import OptionsError
from pipeline_lab.fields import Options
from pipeline_lab.options.explaining import explain_problems
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.script_start import ScriptStart

RECORDED = "recorded"
"""Context of the validation of what was recorded: what cannot be raced any more can still be looked at."""


class RaceRules(Options):
    """When a race may stop, and what it compares; its arms are what the kinds of races differ in."""

    schema_version: Literal[1] = 1
    kind: Literal["race"] = "race"
    name: str = Field("", max_length=200)
    pairs: int = Field(30, ge=6, le=500)
    """Rounds that count after which the race ends in any case."""
    block_steps: int = Field(10, ge=2, le=100_000)
    """Measured steps of one arm in one round."""
    margin_percent: float = Field(3.0, gt=0, le=50)
    """Smallest difference that matters; smaller ones are called equivalent."""
    fail_if_slower_percent: float | None = Field(None, ge=0, le=1000)
    """Race only until it is clear whether a candidate is slower than the baseline by more than this."""
    max_seconds: float = Field(600.0, gt=0, le=86_400)
    """The race ends after this time, warm-up not counted, s."""
    warmup_seconds: float = Field(60.0, gt=0, le=86_400)
    """Time for caches to fill and parallelism to settle, s; after it the arm races in the state it has reached."""
    max_extra_load_percent: float = Field(25.0, gt=0, le=100)
    """A round in which other programs used this much more of the cores than usual does not count."""
    alpha: float = Field(0.05, ge=0.001, le=0.5)
    """Largest chance that any of the intervals, at any moment of the race, misses the truth."""
    seed: int = Field(0, ge=0, le=2**31 - 1)
    """Of the coins that decide which arm runs first."""
    timeout_s: float = Field(3600, gt=0, le=7 * 86_400)
    """Time for all but the warm-ups and the rounds, s; the supervisor ends a race that takes longer."""
    predicted_ratios: tuple[Annotated[float, Field(gt=0)] | None, ...] = ()
    """What each candidate was predicted to take, over the baseline, so that the race can be held against it: per step, or
    per example where the batch sizes differ; empty where nobody predicted."""

    labels: ClassVar = {
        "block_steps": "Steps per block",
        "margin_percent": "Matters from (%)",
        "fail_if_slower_percent": "Fail if slower by (%)",
        "max_seconds": "Race for at most (s)",
        "warmup_seconds": "Warm up for at most (s)",
    }
    left_empty: ClassVar = {"fail_if_slower_percent": "never"}

    @model_validator(mode="after")
    def _predicts_each(self) -> Self:
        if self.predicted_ratios and len(self.predicted_ratios) != self.arm_count - 1:
            raise ValueError(
                f"{len(self.predicted_ratios)} predicted_ratios for {self.arm_count - 1} candidates; give one for each, null "
                "where there is none"
            )
        return self

    @property
    @abstractmethod
    def arm_names(self) -> tuple[str, ...]:
        """Names of the arms, the baseline first."""

    @property
    @abstractmethod
    def arm_count(self) -> int: ...

    def predicted_ratio(self, arm: int) -> float | None:
        """Return what was predicted of an arm, None where nobody did; 0 is the baseline."""
        return self.predicted_ratios[arm - 1] if arm and self.predicted_ratios else None

    @property
    def is_emulated(self) -> bool:
        """Whether an emulated accelerator takes the steps."""
        return False

    @property
    def examples_per_step(self) -> tuple[int, ...] | None:
        """Examples in a step of each arm where they differ; None where they are equal, or where nobody knows them."""
        return None

    @property
    def per(self) -> Literal["step", "example"]:
        """What the arms' times are compared for: arms with different batch sizes are compared per example."""
        return "step" if self.examples_per_step is None else "example"

    @property
    def label(self) -> str:
        """The name, or the names of the arms."""
        return self.name or " against ".join(self.arm_names)[:200]

    def to_json(self) -> str:
        return self.model_dump_json(indent=2) + "\n"


class RaceOptions(RaceRules):
    """Two or more option sets that take turns in one process; the first is the baseline."""

    arms: tuple[RunOptions, ...] = Field(min_length=2, max_length=8)

    @model_validator(mode="after")
    def _arms_can_race(self, info: ValidationInfo) -> "RaceOptions":
        _check_device(self.arms)
        if info.context != RECORDED:
            _check_replicas(self.arms)
            _check_batches(self.arms)
        for number, arm in enumerate(self.arms):
            if arm.training.loop == "keras_fit":
                raise ValueError(
                    f"{arm_name(arm, number)} trains by Model.fit, which cannot take turns with other arms; race with "
                    "loop = custom or in_graph, or compare recorded runs"
                )
            if not arm.is_assembled:  # known only when the race runs
                continue
            if arm.training.page_cache == "cold":
                raise ValueError(
                    f"{arm_name(arm, number)} asks for a cold page cache, but the blocks of a race read the same files again "
                    "and again; set training.page_cache to warm"
                )
            if arm.training.evaluate_every is not None:
                raise ValueError(
                    f"{arm_name(arm, number)} evaluates its model, which a race has no place for; leave "
                    "training.evaluate_every empty"
                )
            endless = any(stage.is_endless for stage in arm.pipeline.stages)
            if not endless:
                raise ValueError(
                    f"the data of {arm_name(arm, number)} end, and a race cannot say when it is over by then; "
                    "add a repeat stage without a count"
                )
        return self

    @property
    def arm_count(self) -> int:
        return len(self.arms)

    @property
    def is_emulated(self) -> bool:
        return self.arms[0].training.is_emulated

    @property
    def examples_per_step(self) -> tuple[int, ...] | None:
        if not all(arm.is_assembled for arm in self.arms):
            return None
        sizes = tuple(arm.pipeline.batch_size for arm in self.arms)
        return sizes if len(set(sizes)) > 1 else None

    @property
    def arm_names(self) -> tuple[str, ...]:
        """Names of the arms, with a letter where two have the same name."""
        names = [arm_name(arm, number) for number, arm in enumerate(self.arms)]
        return tuple(
            name if names.count(name) == 1 else f"{name} ({_letter(number)})" for number, name in enumerate(names)
        )


AS_WRITTEN = "as written"
"""Name of the arm that takes a script's pipeline as it is."""
CHANGES = "changes"
"""Where the environment of such a race says in words what each change does."""


class ScriptRaceOptions(ScriptStart, RaceRules):
    """A script's own training, in which its pipeline takes turns with changed ones; as written it is the baseline."""

    changes: tuple[Annotated[str, Field(min_length=1, max_length=500)], ...] = Field(min_length=1, max_length=7)
    """What each candidate changes, such as ``train.py:41 num_parallel_calls=8``; several with a semicolon between them."""

    @model_validator(mode="after")
    def _changes_differ(self) -> "ScriptRaceOptions":
        twice = next((each for each in self.changes if self.changes.count(each) > 1), None)
        if twice is not None:
            raise ValueError(f"the change {twice!r} is there twice; name each once")
        return self

    @property
    def arm_count(self) -> int:
        return 1 + len(self.changes)

    @property
    def arm_names(self) -> tuple[str, ...]:
        return (AS_WRITTEN, *self.changes)

    @property
    def label(self) -> str:
        return self.name or f"race {self.command}"[:200]


AnyRace: TypeAlias = RaceOptions | ScriptRaceOptions
Race = TypeVar("Race", bound=RaceRules)


def arm_name(arm: RunOptions, number: int) -> str:
    return arm.name or f"arm {_letter(number)}"


def read_race_options(document: dict[str, Any]) -> RaceOptions:
    """Validate the options document of a race.

    Raises:
        OptionsError: It holds something that is not allowed; the text names each place.
    """
    return _read(RaceOptions, document, None)


def read_script_race(document: dict[str, Any]) -> ScriptRaceOptions:
    """Validate the options document of a race inside a script.

    Raises:
        OptionsError: It holds something that is not allowed; the text names each place.
    """
    return _read(ScriptRaceOptions, document, None)


def is_script_race(document: dict[str, Any]) -> bool:
    """Say whether a run's options are those of a race inside a script."""
    return document.get("kind") == "race" and "script" in document


def read_recorded_race(document: dict[str, Any]) -> AnyRace:
    """Validate the options of a recorded race, which today may be refused.

    Raises:
        OptionsError: It holds something that was never allowed; the text names each place.
    """
    if is_script_race(document):
        return _read(ScriptRaceOptions, document, RECORDED)
    return _read(RaceOptions, document, RECORDED)


def _read(kind: type[Race], document: dict[str, Any], context: str | None) -> Race:
    try:
        return kind.model_validate(document, context=context)
    except ValidationError as error:
        raise OptionsError(explain_problems(error, kind)) from None


def _check_device(arms: tuple[RunOptions, ...]) -> None:
    """Refuse arms on different devices.

    Raises:
        ValueError: They are of different kinds, or emulated ones with different steps.
    """
    if len({arm.training.device for arm in arms}) > 1:
        raise ValueError("all arms of a race train on one device; set the same training.device in each")
    if len({arm.training.set_times for arm in arms}) > 1:
        raise ValueError(
            "all arms of a race train on one emulated accelerator; set the same training.step_ms, step_variation_percent, "
            "step_times_ms and seed in each"
        )


def _check_replicas(arms: tuple[RunOptions, ...]) -> None:
    """Refuse arms of which nobody knows what their pipelines hold ready.

    Raises:
        ValueError: An arm divides its batches among replicas.
    """
    for number, arm in enumerate(arms):
        if arm.training.replicas > 1:
            raise ValueError(
                f"{arm_name(arm, number)} divides its batches among {arm.training.replicas} replicas, and tf.data does "
                "not report what such a pipeline has buffered, which a race must know; set training.replicas to 1, or "
                "compare recorded runs"
            )


def _check_batches(arms: tuple[RunOptions, ...]) -> None:
    """Refuse arms of which nobody knows how many examples a step trains on.

    Raises:
        ValueError: Buckets have batches of several sizes, and not all arms sort their examples into the same ones.
    """
    last = [next((stage for stage in reversed(arm.pipeline.stages) if stage.batches), None) for arm in arms]
    if all(each == last[0] for each in last):
        return
    for number, (arm, stage) in enumerate(zip(arms, last, strict=True)):
        sizes = () if stage is None else stage.batches
        if len(set(sizes)) > 1:
            raise ValueError(
                f"the batches of {arm_name(arm, number)} hold {min(sizes)} to {max(sizes)} examples, "
                "so how many a step trains on is not known; give every bucket the same size in batch_sizes, or compare "
                "recorded runs"
            )


def _letter(number: int) -> str:
    return "ABCDEFGH"[number]
