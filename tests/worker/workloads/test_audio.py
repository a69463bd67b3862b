"""Clips of different lengths as tf.data and the step really handle them; the process with TensorFlow is that of the other tests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.sampling.padding import Padding
from pipeline_lab.options.profiling import ProfilingOptions
from pipeline_lab.options.run_options import RunOptions, read_options
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.pipeline.predicted_order import predict_run
from pipeline_lab.stages.batches import BatchStage, BucketStage
from pipeline_lab.stages.functions import ParseStage
from pipeline_lab.stages.order import RepeatStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.stage import Stage
from pipeline_lab.worker.workloads.clips import write_wav
from pipeline_lab.worker.workloads.data_files import record_id
from pipeline_lab.workloads.audio import AudioWorkload
from tests.worker.workloads.test_clips import SILENCE

pytestmark = pytest.mark.tensorflow

Ask = Callable[..., Any]

CLIPS = AudioWorkload(clips_per_class=(6, 6), shortest_s=1, longest_s=20, sample_rate_hz=1000, frame_samples=100)
IN_TURN = ReadStage(mode="interleave", cycle_length=2)
PADDED, RAGGED = (BatchStage(size=4, mode=mode) for mode in ("padded_batch", "ragged_batch"))
BUCKETS = BucketStage(boundaries_s=(4,), batch_sizes=(4, 2))


def options(*batching: Stage, workload: AudioWorkload = CLIPS, read: ReadStage = IN_TURN) -> str:
    return RunOptions(workload=workload, pipeline=PipelineOptions(stages=(read, ParseStage(), *batching))).to_json()


@pytest.mark.parametrize("read", [IN_TURN, ReadStage(), ReadStage(mode="sample"), ReadStage(mode="flat_map")], ids=str)
def test_every_clip_comes_once_with_its_class_as_its_file(ask_tensorflow: Ask, read: ReadStage) -> None:
    ids = ask_tensorflow("ids_of", options=options(PADDED, read=read))
    assert sorted(one for batch in ids for one in batch) == [
        record_id(label, n) for label in range(2) for n in range(6)
    ]


def test_padding_fills_up_to_the_longest_and_ragged_batches_have_none(ask_tensorflow: Ask) -> None:
    padded, ragged = (ask_tensorflow("paddings_of", options=options(each)) for each in (PADDED, RAGGED))
    assert [batch["lengths"] for batch in padded] == [batch["lengths"] for batch in ragged]
    for batch in padded:
        lengths = batch["lengths"]
        assert (batch["examples"], batch["elements"]) == (4, 4 * max(lengths))
        assert batch["padding"] == 4 * max(lengths) - sum(lengths) > 0
    assert [(batch["elements"], batch["padding"]) for batch in ragged] == [(sum(b["lengths"]), 0) for b in padded]


def test_a_bucket_holds_clips_of_its_lengths_only(ask_tensorflow: Ask) -> None:
    batches = ask_tensorflow("paddings_of", options=options(BUCKETS))
    assert sum(batch["examples"] for batch in batches) == 12
    for batch in batches:
        is_short = [length < 40 for length in batch["lengths"]]  # four seconds of ten frames
        assert all(is_short) or not any(is_short)
        assert batch["examples"] <= (4 if all(is_short) else 2)


@pytest.mark.parametrize("drop_remainder", [False, True])
def test_the_order_of_buckets_is_the_predicted_one(ask_tensorflow: Ask, drop_remainder: bool) -> None:
    buckets = BUCKETS.model_copy(update={"drop_remainder": drop_remainder})
    written = options(RepeatStage(count=2), buckets)
    ids = ask_tensorflow("ids_of", options=written)
    order = predict_run(read_options(written), np.array(CLIPS.clips_per_class), 100, cores=1)
    assert order is not None
    told = [record_id(int(file), int(record)) for file, record in zip(order.file, order.record, strict=True)]
    assert told == [one for batch in ids for one in batch]
    assert order.batch.tolist() == [number for number, batch in enumerate(ids) for _ in batch]


def test_the_network_learns_and_padding_changes_nothing_of_it(ask_tensorflow: Ask) -> None:
    padded, ragged = (ask_tensorflow("train", options=options(each), steps=8) for each in (PADDED, RAGGED))
    assert padded["losses"][-1] < padded["losses"][0]
    assert padded["losses"] == pytest.approx(ragged["losses"], rel=1e-3)
    assert padded["again"] == pytest.approx(padded["losses"][0], rel=1e-4)


@pytest.mark.parametrize("loop", ["custom", "in_graph"])
def test_a_job_notes_its_padding(ask_tensorflow: Ask, tmp_path: Path, loop: str) -> None:
    job = RunOptions(
        workload=CLIPS,
        pipeline=PipelineOptions(stages=(IN_TURN, RepeatStage(), ParseStage(), PADDED)),
        training=TrainingOptions(steps=4, warmup_steps=2, loop=loop, steps_per_call=1 if loop == "custom" else 2),
        profiling=ProfilingOptions(enabled=False),
    )
    assert ask_tensorflow("run_own", root=str(tmp_path), options=job.to_json()) == ""
    (folder,) = (each for each in tmp_path.iterdir() if each.is_dir())
    padding = diagnose(folder).padding
    assert isinstance(padding, Padding)
    assert (padding.table.num_rows, padding.examples, padding.examples_per_step) == (6, 24, 4.0)
    once = ask_tensorflow("paddings_of", options=options(PADDED))
    assert padding.elements == 2 * sum(batch["elements"] for batch in once)  # two epochs of three batches
    assert padding.percent == pytest.approx(200 * sum(batch["padding"] for batch in once) / padding.elements)


def test_a_clip_that_cannot_be_decoded_is_named(ask_tensorflow: Ask, tmp_path: Path) -> None:
    for name in ("a/1.wav", "b/1.wav"):
        (tmp_path / "clips" / name).parent.mkdir(parents=True)
        write_wav(tmp_path / "clips" / name, SILENCE, 1000)
    cut = tmp_path / "clips" / "b" / "1.wav"
    cut.write_bytes(cut.read_bytes()[:-100])
    workload = CLIPS.model_copy(update={"data": "folder", "folder": str(tmp_path / "clips"), "clips_per_class": (1,)})
    sentence = ask_tensorflow("run_own", root=str(tmp_path), options=options(PADDED, workload=workload))
    assert "b/1.wav was cut short: its header promises 1 s, but it ends after 0.95 s" in sentence
