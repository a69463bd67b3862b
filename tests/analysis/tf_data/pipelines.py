"""Small traces of tf.data pipelines, times in µs, whose answers can be added up in the head."""

from typing import Any

from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.tf_data import traced_pipeline as tf_data
from pipeline_lab.analysis.tf_data.tf_data import CriticalPath, TfData, TracedStage
from pipeline_lab.trace.schema import Trace
from tests.support.traces import WAIT, Event, LineSpec, host, line, trace

RUN = "InstantiatedCapturedFunction::Run"
RUN_ASYNC = "InstantiatedCapturedFunction::RunAsync"
PROCESS = "ExecutorState::Process"
DONE = "ExecutorDoneCallback"
POOL = "tf_data_private_threadpool/1"
OWN_THREAD = "tf_data_iterator_resource/1"
DECODE = "DecodeJpeg:DecodeJpeg"


def call(path: str, start: float, duration: float, **stats: Any) -> Event:
    return f"Iterator::Root::{path}" if path else "Iterator::Root", start, duration, stats


def analyzed(*lines: LineSpec, **kwargs: Any) -> TfData:
    return tf_data.analyze_pipeline(Activity(built(*lines, **kwargs)), lambda: None)


def built(*lines: LineSpec, **kwargs: Any) -> Trace:
    return trace(host(*lines), **kwargs)


def stage(pipeline: TfData, name: str) -> TracedStage:
    return next(stage for stage in pipeline.stages if stage.name == name)


def shares(pipeline: TfData) -> dict[tuple[str | None, str], float]:
    """Return µs of wait by stage and by what."""
    path = pipeline.critical_path
    assert isinstance(path, CriticalPath)
    return {
        (None if share.stage is None else pipeline.stages[share.stage].name, share.what): share.wait_ns / 1000
        for share in path.shares
    }


def serial_map(at: float = 0) -> tuple[LineSpec, ...]:
    """Return a wait of 100: 5 handing over, 5 in the root, 10 in the map, 20 reading, 60 in the map's function.

    The function runs for 40: 30 decoding and 10 in cheap ops; for the other 20 it is on no thread.
    """
    return (
        line(
            "python",
            (WAIT, at, 100),
            call("", at + 5, 95),
            call("Map", at + 10, 90),
            call("Map::TFRecord", at + 15, 20),
            (RUN, at + 40, 60, {"id": 7}),
        ),
        line(POOL, (PROCESS, at + 50, 40, {"id": 7}), (DECODE, at + 55, 30)),
    )


def prefetched(first_id: int = 1, made_id: int = 1) -> tuple[LineSpec, ...]:
    """Return a wait of 100 for a prefetched batch that its thread makes from 20 to 90: 50 batching, 20 reading."""
    return (
        line(
            "python",
            (WAIT, 0, 100),
            call("", 0, 100),
            call("Prefetch", 0, 100, buffered_elements=0, buffer_limit=2),
            ("PrefetchConsume", 95, 5, {"element_id": first_id}),
        ),
        line(
            OWN_THREAD,
            ("PrefetchProduce", 20, 70, {"element_id": made_id}),
            call("Prefetch::BatchV2", 20, 70),
            call("Prefetch::BatchV2::TFRecord", 30, 20),
        ),
    )
