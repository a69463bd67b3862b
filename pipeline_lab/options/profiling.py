"""When the TensorFlow profiler is on, and which probes run with it."""

from typing import ClassVar

from pydantic import Field, model_validator

from pipeline_lab.fields import Options


class ProfilingOptions(Options):
    """Short profile windows, each flushed to disk while training goes on."""

    enabled: bool = True
    steps_per_window: int = Field(5, ge=1, le=1_000_000)
    """Training steps recorded in one window."""
    every_steps: int = Field(100, ge=1, le=100_000_000)
    """Steps from the start of one window to the start of the next; the default records 5 % of all steps."""
    memory_ceiling_mb: int = Field(200, ge=16, le=1_000_000)
    """Memory that one window may add to the process, MB; windows get shorter when they come near it."""
    sample_probe: bool = True
    """Note which file and record each example came from (for your own records this rewrites the reader)."""

    matters: ClassVar = ("enabled", "steps_per_window", "every_steps")
    labels: ClassVar = {"every_steps": "One window every … steps", "enabled": "Profiler on"}

    @model_validator(mode="after")
    def _windows_fit(self) -> "ProfilingOptions":
        if self.steps_per_window > self.every_steps:
            raise ValueError(
                f"windows of {self.steps_per_window} steps do not fit into every {self.every_steps} steps; "
                "make every_steps at least as large"
            )
        return self
