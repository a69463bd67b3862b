"""How long and how the job trains."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from pipeline_lab.fields import Options

_NO_MODEL = ("checkpoint_every", "keep_outputs_of_step", "precision", "xla", "accumulate", "replicas")
"""What only means something with a model, which the emulated accelerator has not."""
_OF_EMULATED = ("step_ms", "step_variation_percent", "step_times_ms")


def _parse_times(value: Any) -> Any:
    """Read ``"20,35.5"`` or ``"3x20,35.5"`` into a tuple of times; anything else is left to be judged as it is."""
    if isinstance(value, int | float):
        return (value,)
    if not isinstance(value, str):
        return value
    times: list[float] = []
    for part in filter(None, map(str.strip, value.split(","))):
        count, times_sign, time = part.rpartition("x")
        try:
            times += [float(time)] * (int(count) if times_sign else 1)
        except ValueError:
            raise ValueError(f"{part[:40]!r} is not a time; write times in ms like 20,35.5 or 3x20,35.5") from None
    return tuple(times)


StepTimes = Annotated[
    tuple[Annotated[float, Field(gt=0, le=600_000)], ...], BeforeValidator(_parse_times), Field(max_length=10_000)
]


class TrainingOptions(Options):
    """The training loop: how many steps, on what device, and what is measured before them."""

    steps: int | None = Field(200, ge=1, le=100_000_000)
    """Training steps after the warm-up."""
    seconds: float | None = Field(None, gt=0, le=7 * 86_400)
    """Train for this long after the warm-up, instead of a number of steps."""
    warmup_steps: int = Field(5, ge=1, le=100_000)
    """First steps, left out of every average: compilation, buffer filling."""
    loop: Literal["custom", "in_graph", "keras_fit"] = "custom"
    """Who calls the steps: a Python loop, one by one; a loop inside a `tf.function`; or Keras' `Model.fit`."""
    steps_per_call: int = Field(1, ge=1, le=100_000)
    """Steps of one call from Python, for loops that take several; Keras calls it `steps_per_execution`."""
    calibrate: bool = True
    """Before the steps, time the compute-only step and the pipeline alone."""
    page_cache: Literal["warm", "cold"] = "warm"
    """`cold`: the data files are dropped from the system's page cache before they are read; `warm`: read as they are."""
    checkpoint_every: Annotated[int, Field(ge=1, le=100_000_000)] | None = None
    """Steps between two checkpoints of the model, written while training stands still; None writes none."""
    evaluate_every: Annotated[int, Field(ge=1, le=100_000_000)] | None = None
    """Steps between two evaluations of the model, the warm-up counted too; None evaluates never."""
    evaluate_steps: int = Field(10, ge=1, le=100_000)
    """Batches of an evaluation; each evaluation starts with the first of them."""
    evaluation: Literal["rebuild", "keep"] = "rebuild"
    """After an evaluation the training pipeline is rebuilt, as train-and-evaluate loops do, or continues."""
    held_out_files: int = Field(0, ge=0, le=10_000)
    """Files, the last ones, that only evaluations read; with 0 they read those that train."""
    keep_outputs_of_step: Annotated[int, Field(ge=0, le=100_000_000)] | None = None
    """Number of a step, the warm-up counted from 0, whose outputs are kept to look at, with the labels; None keeps none."""
    device: Literal["auto", "cpu", "gpu", "emulated"] = "auto"
    """`emulated`: an accelerator that holds each batch for a set time, without a model and without using the CPU."""
    step_ms: float = Field(20.0, gt=0, le=600_000)
    """Mean time of a step on the emulated accelerator, ms."""
    step_variation_percent: float = Field(0.0, ge=0, le=200)
    """Coefficient of variation of these times, percent; they are drawn from a log-normal distribution, by `seed`."""
    step_times_ms: StepTimes = ()
    """Times of successive steps instead, ms, repeated in order; `--set` also takes a run or capture to copy them from."""
    read_every_step: bool = False
    """Wait for each step's result before the next batch is requested, as a loop does that prints its loss."""
    precision: Literal["float32", "mixed_float16", "mixed_bfloat16"] = "float32"
    xla: bool = False
    """Compile the step with XLA (`jit_compile`); of the images workload, on one device."""
    accumulate: int = Field(1, ge=1, le=64)
    """Micro-batches that each batch is cut into: gradients add up, weights change once; of the images workload."""
    replicas: int = Field(1, ge=1, le=64)
    """Devices that share each batch (MirroredStrategy); a machine with fewer is divided into logical ones."""
    learning_rate: float = Field(0.05, gt=0, le=100)
    seed: int = Field(0, ge=0, le=2**31 - 1)
    timeout_s: float = Field(3600, gt=0, le=7 * 86_400)
    """The supervisor ends a job that takes longer, s; the `seconds` that it trains for come on top."""

    matters: ClassVar = ("loop", "steps_per_call", "device", "step_ms")
    labels: ClassVar = {
        "checkpoint_every": "Checkpoint every … steps",
        "keep_outputs_of_step": "Keep the outputs of step …",
        "xla": "XLA",
        "accumulate": "Micro-batches per step",
        "evaluate_every": "Evaluate every … steps",
        "evaluate_steps": "Batches of an evaluation",
        "evaluation": "Training pipeline after it",
        "step_ms": "Step time (ms)",
        "step_variation_percent": "Variation of it (%)",
        "step_times_ms": "Recorded step times (ms)",
        "read_every_step": "Read every step's result",
    }
    left_empty: ClassVar = {"checkpoint_every": "never", "keep_outputs_of_step": "none", "evaluate_every": "never"}
    shown_with: ClassVar = {
        "steps_per_call": ("loop", ("in_graph", "keras_fit")),
        "evaluate_steps": ("evaluate_every", None),
        "evaluation": ("evaluate_every", None),
        "held_out_files": ("evaluate_every", None),
        **dict.fromkeys(_OF_EMULATED, ("device", ("emulated",))),
        "read_every_step": ("loop", ("custom",)),
    }

    @property
    def is_emulated(self) -> bool:
        """Say whether steps only take time, on an accelerator that does not exist."""
        return self.device == "emulated"

    @property
    def mean_step_ms(self) -> float:
        """Mean time of a step on the emulated accelerator, ms."""
        return sum(self.step_times_ms) / len(self.step_times_ms) if self.step_times_ms else self.step_ms

    @property
    def times_vary(self) -> bool:
        """Say whether steps on the emulated accelerator differ in how long they take."""
        return self.step_variation_percent > 0 or len(set(self.step_times_ms)) > 1

    @property
    def set_times(self) -> tuple[object, ...]:
        """What decides how long each step on the emulated accelerator takes."""
        varies = self.step_variation_percent
        return (self.step_ms, varies, self.step_times_ms, self.seed if varies else None)

    @property
    def overlaps_host(self) -> bool:
        """Say whether the loop goes on while the emulated accelerator works."""
        return self.is_emulated and not self.read_every_step

    def is_set(self, name: str) -> bool:
        """Say whether an option differs from its default."""
        return bool(getattr(self, name) != type(self).model_fields[name].default)

    @model_validator(mode="after")
    def _emulated_has_no_model(self) -> "TrainingOptions":
        if not self.is_emulated:
            for name in filter(self.is_set, _OF_EMULATED):
                raise ValueError(
                    f"{name} is a step of the emulated accelerator; set device = emulated, or leave it out"
                )
            return self
        if self.loop != "custom":
            raise ValueError("the emulated accelerator is called from Python, step by step; set loop = custom")
        for name in filter(self.is_set, _NO_MODEL):
            raise ValueError(f"the emulated accelerator has no model, so {name} means nothing; leave it out")
        if self.step_times_ms and (self.is_set("step_ms") or self.step_variation_percent):
            raise ValueError(
                "step_times_ms says how long each step takes; leave out step_ms and step_variation_percent"
            )
        return self

    @model_validator(mode="after")
    def _only_a_python_loop_reads(self) -> "TrainingOptions":
        if self.read_every_step and self.loop != "custom":
            raise ValueError(f"loop = {self.loop} reads results where it ends a call; leave out read_every_step")
        return self

    @model_validator(mode="after")
    def _loop_takes_several(self) -> "TrainingOptions":
        if self.loop == "custom" and self.steps_per_call > 1:
            raise ValueError(
                "a custom loop calls every step itself; for several steps per call choose loop = in_graph or keras_fit"
            )
        return self

    @model_validator(mode="after")
    def _kept_step_is_taken(self) -> "TrainingOptions":
        kept = self.keep_outputs_of_step
        if kept is None:
            return self
        if self.steps is not None and kept >= self.warmup_steps + self.steps:
            last = self.warmup_steps + self.steps - 1
            raise ValueError(f"keep_outputs_of_step is {kept}, but the last step is number {last}; choose one up to it")
        return self

    @model_validator(mode="after")
    def _held_out_for_evaluation(self) -> "TrainingOptions":
        if self.held_out_files and self.evaluate_every is None:
            raise ValueError("held_out_files are for evaluations; set evaluate_every, or hold out none")
        return self

    @model_validator(mode="after")
    def _steps_or_seconds(self) -> "TrainingOptions":
        if (self.steps is None) == (self.seconds is None):
            raise ValueError("give either steps or seconds, and leave the other empty")
        return self
