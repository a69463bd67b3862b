"""Checkpoints of the model, written by the training thread while training stands still, as most scripts do."""

from pathlib import Path

import tensorflow as tf

from pipeline_lab.worker.trainer import Trainer


class Checkpoints:
    """Keeps the latest checkpoint of a job in its scratch folder.

    Args:
        trainer: Whose weights are written.
        folder: Where to.
        every: Steps between two; None writes none.
    """

    def __init__(self, trainer: Trainer, folder: Path, every: int | None) -> None:
        self._every, self._path = every, str(folder / "checkpoint" / "model")
        self._checkpoint = tf.train.Checkpoint(weights=trainer.weights()) if every else None

    def after_steps(self, first: int, last: int) -> None:
        """Write one if it became due with one of these steps."""
        if (
            self._checkpoint is not None
            and self._every is not None
            and (last + 1) // self._every > first // self._every
        ):
            self._checkpoint.write(self._path)
