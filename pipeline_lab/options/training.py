"""How long and how the job trains."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from pipeline_lab.fields import Options


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
    """Before the steps, time the step on a held batch (G) and the pipeline alone (D)."""
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
    device: Literal["auto", "cpu", "gpu"] = "auto"
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

    labels: ClassVar = {
        "checkpoint_every": "Checkpoint every … steps",
        "keep_outputs_of_step": "Keep the outputs of step …",
        "xla": "XLA",
        "accumulate": "Micro-batches per step",
        "evaluate_every": "Evaluate every … steps",
        "evaluate_steps": "Batches of an evaluation",
        "evaluation": "Training pipeline after it",
    }
    left_empty: ClassVar = {"checkpoint_every": "never", "keep_outputs_of_step": "none", "evaluate_every": "never"}
    shown_with: ClassVar = {
        "steps_per_call": ("loop", ("in_graph", "keras_fit")),
        "evaluate_steps": ("evaluate_every", None),
        "evaluation": ("evaluate_every", None),
        "held_out_files": ("evaluate_every", None),
    }

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
