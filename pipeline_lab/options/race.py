"""Everything that a race is told: its arms, and when it may stop.

``SCHEMA_VERSION`` of the document is that of a run's options; ``kind`` tells the two apart.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.base import Options
from pipeline_lab.options.explaining import explain
from pipeline_lab.options.pipeline import RepeatStage
from pipeline_lab.options.run import RunOptions


class RaceOptions(Options):
    """Two or more option sets that take turns in one process; the first is the baseline."""

    schema_version: Literal[1] = 1
    kind: Literal["race"] = "race"
    name: str = Field("", max_length=200)
    arms: tuple[RunOptions, ...] = Field(min_length=2, max_length=8)
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
    """An arm whose caches are not full and whose parallelism has not settled by then races as it is, s."""
    max_extra_load_percent: float = Field(25.0, gt=0, le=100)
    """A round in which other programs used so much more of the cores than was usual does not count."""
    alpha: float = Field(0.05, ge=0.001, le=0.5)
    """Largest chance that any of the intervals, at any moment of the race, misses the truth."""
    seed: int = Field(0, ge=0, le=2**31 - 1)
    """Of the coins that decide which arm runs first."""
    timeout_s: float = Field(3600, gt=0, le=7 * 86_400)
    """The supervisor ends a race that takes longer, s."""
    predicted_ratios: tuple[Annotated[float, Field(gt=0)] | None, ...] = ()
    """What each candidate's step was predicted to take, over the baseline's, so that the race can be held against it;
    empty where nobody predicted."""

    @model_validator(mode="after")
    def _arms_can_race(self) -> "RaceOptions":
        if self.predicted_ratios and len(self.predicted_ratios) != len(self.arms) - 1:
            raise ValueError(
                f"{len(self.predicted_ratios)} predicted_ratios for {len(self.arms) - 1} candidates; give one for each, null "
                "where there is none"
            )
        if len({arm.training.device for arm in self.arms}) > 1:
            raise ValueError("all arms of a race train on one device; set the same training.device in each")
        for number, arm in enumerate(self.arms):
            if arm.training.loop == "keras_fit":
                raise ValueError(
                    f"{arm_name(arm, number)} trains by Model.fit, which cannot take turns with other arms; race with "
                    "loop = custom or in_graph, or compare recorded runs"
                )
            if not arm.is_assembled:  # only the race itself will tell
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
            endless = any(isinstance(stage, RepeatStage) and stage.count is None for stage in arm.pipeline.stages)
            if not endless:
                raise ValueError(
                    f"the data of {arm_name(arm, number)} end, and a race cannot say when it is over by then; "
                    "add a repeat stage without a count"
                )
        return self

    def predicted_ratio(self, arm: int) -> float | None:
        """Return what was predicted of an arm, None where nobody did; 0 is the baseline."""
        return self.predicted_ratios[arm - 1] if arm and self.predicted_ratios else None

    @property
    def label(self) -> str:
        """The name, or the names of the arms."""
        return self.name or " against ".join(self.arm_names)[:200]

    @property
    def arm_names(self) -> tuple[str, ...]:
        """Names of the arms, told apart by their letter where two are called alike."""
        names = [arm_name(arm, number) for number, arm in enumerate(self.arms)]
        return tuple(
            name if names.count(name) == 1 else f"{name} ({_letter(number)})" for number, name in enumerate(names)
        )

    def to_json(self) -> str:
        return self.model_dump_json(indent=2) + "\n"


def arm_name(arm: RunOptions, number: int) -> str:
    return arm.name or f"arm {_letter(number)}"


def read_race_options(document: dict[str, Any]) -> RaceOptions:
    """Validate the options document of a race.

    Raises:
        OptionsError: It holds something that is not allowed; the text names each place.
    """
    try:
        return RaceOptions.model_validate(document)
    except ValidationError as error:
        raise OptionsError(explain(error, RaceOptions)) from None


def _letter(number: int) -> str:
    return "ABCDEFGH"[number]
