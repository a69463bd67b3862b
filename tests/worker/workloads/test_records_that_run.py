"""A user's own records, parsed by what was found in them; the process with TensorFlow is that of the other tests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline_lab.options.profiling import ProfilingOptions
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.runs.data_files.found_features import suggest_options
from pipeline_lab.stages.batches import BatchStage
from pipeline_lab.stages.functions import ParseStage
from pipeline_lab.stages.order import RepeatStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.stage import Stage
from pipeline_lab.worker.workloads.data_files import record_id
from tests.runs.data_files.test_tfrecord import write_records
from tests.support.examples import example, floats, int64s, strings

pytestmark = pytest.mark.tensorflow

Ask = Callable[..., Any]

PARSE, BATCH = ParseStage(), BatchStage(size=4)
TRAINING = TrainingOptions(steps=3, warmup_steps=1, calibrate=False)


def record(number: int) -> bytes:
    tokens = int64s(*range(number % 3))
    return example(label=int64s(number % 2), vector=floats(number, 1), tokens=tokens, text=strings(b"x" * number))


@pytest.fixture
def pattern(tmp_path: Path) -> str:
    for name in ("a", "b"):
        write_records(tmp_path / f"{name}.tfrecord", [record(number) for number in range(8)])
    return str(tmp_path / "*.tfrecord")


def job(pattern: str, *stages: Stage, label: str | None = "label") -> RunOptions:
    found = suggest_options(pattern)
    return found.model_copy(
        update={
            "workload": found.workload.model_copy(update={"label": label}),
            "pipeline": PipelineOptions(stages=(ReadStage(), RepeatStage(), *stages)),
            "training": TRAINING,
            "profiling": ProfilingOptions(enabled=False),
        }
    )


@pytest.mark.parametrize(
    "stages",
    [(BATCH, PARSE), *((PARSE, BatchStage(size=4, mode=mode)) for mode in ("padded_batch", "ragged_batch"))],
    ids=["vectorized", "padded", "ragged"],
)
@pytest.mark.parametrize("label", ["label", None])
def test_the_step_learns_from_whatever_numbers_there_are(
    ask_tensorflow: Ask, pattern: str, stages: tuple[Stage, ...], label: str | None
) -> None:
    result = ask_tensorflow("train", options=job(pattern, *stages, label=label).to_json(), steps=10)
    assert result["losses"][-1] < result["losses"][0]
    assert result["again"] == pytest.approx(result["losses"][0], rel=1e-4)


def test_records_carry_where_they_came_from_where_the_probe_is_on(ask_tensorflow: Ask, pattern: str) -> None:
    ids = ask_tensorflow("ids_of", options=job(pattern, BATCH, PARSE).to_json(), probe=True, batches=4)
    assert [one for batch in ids for one in batch] == [
        record_id(file, number) for file in range(2) for number in range(8)
    ]


def test_a_record_that_does_not_fit_is_named_when_the_job_fails(
    ask_tensorflow: Ask, pattern: str, tmp_path: Path
) -> None:
    options = job(pattern, BATCH, PARSE)
    bad = write_records(tmp_path / "b.tfrecord", [record(0), example(vector=floats(1, 2), text=strings(b""))])
    sentence = ask_tensorflow("run_own", root=str(tmp_path / "runs"), options=options.to_json())
    assert sentence.startswith(f"Record 1 of {bad} has no feature 'label', which every record must hold")
