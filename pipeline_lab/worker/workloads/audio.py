"""Data and step of the audio workload: what the step hears in each frame, averaged over the frames of a clip, tells
the class.

Padded batches are computed whole and their padding is left out of the mean; of ragged ones, only the frames that
there are are computed.
"""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.worker.job_context import StopRequest
from pipeline_lab.worker.note.event_log import EventLog
from pipeline_lab.worker.train.placement import compile_step
from pipeline_lab.worker.train.training_steps import Batch, OneDeviceTrainer, Trainer
from pipeline_lab.worker.workloads.clips import check_clips, find_damaged_clip, tones_recipe
from pipeline_lab.worker.workloads.data_and_step import DataAndStep, Search, make_optimizer
from pipeline_lab.worker.workloads.data_files import DataRecipe, cached_files, find_class_folders
from pipeline_lab.workloads.audio import ENDINGS, AudioWorkload

HIDDEN_UNITS = (64, 64)
"""Of the layers that every frame goes through."""


class AudioTrainer(OneDeviceTrainer):
    """Trains on spectra, shape (batch, frames, bins), dense or ragged in the second dimension."""

    def __init__(self, workload: AudioWorkload, training: TrainingOptions) -> None:
        keras.mixed_precision.set_global_policy(training.precision)
        classes = workload.classes if workload.data == "folder" else len(workload.clips_per_class)
        bins = workload.frame_samples // 2 + 1
        self._frames = keras.Sequential(
            [keras.Input((bins,)), *(keras.layers.Dense(units, activation="relu") for units in HIDDEN_UNITS)]
        )
        self._classify = keras.Sequential(
            [keras.Input((HIDDEN_UNITS[-1],)), keras.layers.Dense(classes, dtype="float32")]
        )
        self._weights = [*self._frames.trainable_variables, *self._classify.trainable_variables]
        self._optimizer = make_optimizer(training)
        self._optimizer.build(self._weights)
        self._train = compile_step(self._train_on, reduce_retracing=True)
        self._judge = compile_step(self._judge_on, reduce_retracing=True)

    def step(self, batch: Batch) -> Any:
        return self._train(batch["spectrum"], batch["length"], batch["label"])

    def evaluate(self, batch: Batch) -> Any:
        """Return what a step would, and leave the network as it is."""
        return self._judge(batch["spectrum"], batch["length"], batch["label"])

    def read(self, result: Any) -> tuple[float, float]:
        loss, accuracy, *_ = result
        return float(loss), float(accuracy)

    def weights(self) -> list[Any]:
        return [*self._weights, *self._optimizer.variables]

    def _train_on(self, spectrum: Any, length: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss, accuracy, logits = self._judge_on(spectrum, length, labels)
            scaled_loss = self._optimizer.scale_loss(loss)
        self._optimizer.apply(tape.gradient(scaled_loss, self._weights), self._weights)
        return loss, accuracy, logits

    def _judge_on(self, spectrum: Any, length: Any, labels: Any) -> Any:
        logits = self._classify(self._mean_over_frames(spectrum, length))
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        is_right = tf.equal(tf.argmax(logits, axis=-1), labels)
        return tf.reduce_mean(losses), tf.reduce_mean(tf.cast(is_right, tf.float32)), logits

    def _mean_over_frames(self, spectrum: Any, length: Any) -> Any:
        """Return the mean of what the layers make of a clip's own frames, shape (batch, units)."""
        if isinstance(spectrum, tf.RaggedTensor):
            heard = self._hear(spectrum.flat_values)
            return tf.math.unsorted_segment_mean(heard, spectrum.value_rowids(), spectrum.nrows())
        shape = tf.shape(spectrum)
        heard = tf.reshape(self._hear(tf.reshape(spectrum, [-1, spectrum.shape[-1]])), [shape[0], shape[1], -1])
        is_own = tf.sequence_mask(length, shape[1], heard.dtype)[..., tf.newaxis]
        return tf.math.divide_no_nan(tf.reduce_sum(heard * is_own, axis=1), tf.reduce_sum(is_own, axis=1))

    def _hear(self, frames: Any) -> Any:
        """Send frames, shape (frames, bins), through the layers; their mean is taken in full precision."""
        return tf.cast(self._frames(frames), tf.float32)


class AudioDataAndStep(DataAndStep[AudioWorkload]):
    """Clips that the lab writes, or folders of the user's; two layers on each frame."""

    def find_files(self, log: EventLog, stop: StopRequest) -> list[DataFile]:
        workload = self.workload
        if workload.folder is None:
            return cached_files(self.recipe(), log, stop)
        folders = find_class_folders(workload.folder, ENDINGS, workload.classes, stop)
        check_clips(folders, workload.sample_rate_hz, stop)
        return folders

    def recipe(self) -> DataRecipe:
        return tones_recipe(self.workload)

    def searches(self) -> tuple[Search, ...]:
        return (find_damaged_clip,)

    def make_trainer(self, options: RunOptions, *, is_gpu: bool, tables: Sequence[DataFile], pipeline: Any) -> Trainer:
        del is_gpu, tables, pipeline
        return AudioTrainer(self.workload, options.training)


DATA_AND_STEP = AudioDataAndStep
