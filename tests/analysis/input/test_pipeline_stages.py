"""Stages of a pipeline from trace and model: those that a window missed, and inputs of the same names."""

from dataclasses import replace

from pipeline_lab.analysis.input.pipeline_stages import PipelineStage, join_stages
from pipeline_lab.analysis.tf_data.iterator_places import place_above
from pipeline_lab.analysis.tf_data.tf_data import StageOrigin, TfData, TracedStage
from pipeline_lab.errors import Unavailable
from tests.support import results

MS = 1_000_000


def trace(*paths: str) -> TfData:
    """Return ten batches of a pipeline with these stages, a millisecond of work in each for a batch."""
    stages = [
        TracedStage(
            number=number,
            name=path.rpartition("::")[2],
            path=path,
            node="",
            origin=StageOrigin.WRITTEN,
            iterators=1,
            calls=10,
            elements=10,
            self_ns=10 * MS,
            observed_ns=100 * MS,
            parent=None if "::" not in path else paths.index(place_above(path)),
        )
        for number, path in enumerate(paths)
    ]
    return replace(results.tf_data(), stages=tuple(stages), critical_path=Unavailable("Not known."))


def model(*stages: tuple[str, float, float]) -> object:
    """Return the model of stages that follow each other: name, visits for a batch, time of one in ms."""
    work, path = [], ""
    for number, (name, visits, each_ms) in enumerate(stages):
        path = f"{path}::{name}".strip(":")
        parent = number - 1 if number else None
        work.append(results.stage_work(name, parent, visits, each_ms * MS, path=path))
    return replace(results.live_model(), stages=tuple(work))


def joined(tf_data: TfData, live: object) -> dict[str, PipelineStage]:
    found = join_stages(tf_data, live, results.written())
    assert isinstance(found, tuple)
    return {stage.path: stage for stage in found}


def test_what_filled_a_shuffle_buffer_before_the_window_is_a_stage_too() -> None:
    live = model(("Root", 1, 0.1), ("Shuffle", 10, 0.1), ("Map", 10, 2.0), ("Range", 10, 1.0))
    found = joined(trace("Root", "Root::Shuffle"), live)
    assert list(found) == ["Root", "Root::Shuffle", "Root::Shuffle::Map", "Root::Shuffle::Map::Range"]
    assert found["Root::Shuffle::Map"].work_ns == 20 * MS


def test_what_filled_a_buffer_below_a_zip_lies_below_that_buffer() -> None:
    live = model(("Root", 1, 0.1), ("Zip", 1, 0.1), ("Shuffle", 10, 0.1), ("Map", 10, 2.0))
    found = joined(trace("Root", "Root::Zip", "Root::Zip[0]::Shuffle"), live)
    assert list(found)[-1] == "Root::Zip[0]::Shuffle::Map"


def test_stages_of_another_pipeline_of_the_process_are_left_out() -> None:
    found = joined(trace("Root", "Root::Prefetch"), model(("Root", 1, 0.1), ("Shuffle", 10, 0.1), ("Map", 10, 2.0)))
    assert list(found) == ["Root", "Root::Prefetch"]


def test_inputs_of_a_zip_share_what_the_model_counts_for_all_of_them() -> None:
    live = model(("Root", 1, 0.1), ("Zip", 1, 0.1), ("Map", 2, 3.0))
    found = joined(trace("Root", "Root::Zip", "Root::Zip[0]::Map", "Root::Zip[1]::Map"), live)
    assert [found[f"Root::Zip[{at}]::Map"].work_ns for at in (0, 1)] == [3 * MS, 3 * MS]
    assert found["Root::Zip"].visits_per_batch == 1
