"""Hand-built analysis results: small enough to check by eye, large enough to draw.

The story: 200 steps, the first five warm-up; windows of ten steps at steps 5, 55, 105 and 155. Every step waits
30 ms for input, computes 15 ms on the device, loses 2 ms in Python and 3 ms to a host operation.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis.causes import GapCause, VerdictClass
from pipeline_lab.analysis.declaring.job_events import JobEvents
from pipeline_lab.analysis.idle.idle_gaps import BUSY_TABLE, GAP_TABLE, DeviceTime, IdleGaps
from pipeline_lab.analysis.input.input_stalls import WAIT_TABLE, InputStalls
from pipeline_lab.analysis.input.live_model import STAGE_TIMELINE, LiveModel, StageWork
from pipeline_lab.analysis.machine.allocators import ALLOCATOR_TABLE, Allocator, Allocators
from pipeline_lab.analysis.machine.gpu_clocks import GpuClocks
from pipeline_lab.analysis.machine.job_load import JobLoad
from pipeline_lab.analysis.machine.process_memory import MEMORY_TABLE, Memory
from pipeline_lab.analysis.machine.profiler_cost import WINDOW_TABLE, ProfilerCost
from pipeline_lab.analysis.results import Diagnosis, Source, analyses
from pipeline_lab.analysis.sampling.evaluation import Evaluation, read_evaluation
from pipeline_lab.analysis.sampling.file_sampling import FILE_TABLE, FileSampling
from pipeline_lab.analysis.sampling.kept_outputs import KeptOutputs, read_kept_outputs
from pipeline_lab.analysis.sampling.padding import Padding, measure_padding
from pipeline_lab.analysis.sampling.sample_history import COVERAGE_TABLE, LABEL_TABLE, TIMELINE_TABLE, LabelMix
from pipeline_lab.analysis.steps.calibration import Calibration
from pipeline_lab.analysis.steps.checkpoints import Checkpoints
from pipeline_lab.analysis.steps.eager_ops import EagerOps
from pipeline_lab.analysis.steps.iterator_ends import IteratorEnds, IteratorStarts
from pipeline_lab.analysis.steps.job_steps import JOB_STEP_TABLE, JobSteps
from pipeline_lab.analysis.steps.outlier_steps import OUTLIER_TABLE, OutlierSteps
from pipeline_lab.analysis.steps.recorded_steps import STEP_TABLE, Steps
from pipeline_lab.analysis.steps.retracing import RETRACE_TABLE, Retraces
from pipeline_lab.analysis.steps.step_breakdown import PARTS, PARTS_TABLE, StepBreakdown, sum_up
from pipeline_lab.analysis.steps.step_phases import Phase, PhaseTimes, StepPhases
from pipeline_lab.analysis.steps.stragglers import HOST_TABLE, Hosts
from pipeline_lab.analysis.tf_data.tf_data import (
    HISTORY_TABLE,
    POOL_TABLE,
    CriticalPath,
    PathShare,
    StageOperation,
    StageOrigin,
    Tally,
    TfData,
    TracedStage,
)
from pipeline_lab.analysis.verdict.verdict import Confidence, Evidence, Finding, JudgedStep, Suggestion, Verdict
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.run_documents import DataFile, WrittenPipeline, WrittenStage
from pipeline_lab.runs.run_events import EvaluationEvent
from pipeline_lab.runs.run_tables import EVALUATED, OUTPUTS, PADDING

MS = 1_000_000
STEP_NS = 50 * MS
WAIT_NS, BUSY_NS, PYTHON_NS, OPERATION_NS = 30 * MS, 15 * MS, 2 * MS, 3 * MS
WARMUP = 5
WINDOW_STEPS, EVERY = 10, 50
HOST, DEVICE = "trainer", "/device:GPU:0"


def windows_of(steps: int = 200) -> list[tuple[int, int]]:
    """Return first step and end of each window."""
    return [(first, first + WINDOW_STEPS) for first in range(WARMUP, steps - WINDOW_STEPS + 1, EVERY)]


def job_steps(steps: int = 200, accuracy: bool = True) -> JobSteps:
    number = np.arange(steps)
    wobble = (number * 7919 % 13 - 6) * MS // 4
    profiled = np.zeros(steps, bool)
    for first, end in windows_of(steps):
        profiled[first:end] = True
    step_ns = STEP_NS + wobble + np.where(number == 0, 400 * MS, 0)
    table = pa.table(
        {
            "step": number,
            "warmup": number < WARMUP,
            "start_ns": np.cumsum(step_ns) - step_ns,
            "wait_ns": WAIT_NS + wobble,
            "compute_ns": np.full(steps, BUSY_NS),
            "step_ns": step_ns,
            "loss": np.round(2.3 * np.exp(-number / 80) + 0.1, 6),
            "accuracy": np.round(1 - 0.9 * np.exp(-number / 60), 6) if accuracy else np.full(steps, np.nan),
            "profiled": profiled,
        },
        schema=JOB_STEP_TABLE,
    )
    measured = step_ns[WARMUP:]
    return JobSteps(
        table,
        len(measured),
        float(np.median(measured)),
        float(np.percentile(measured, 95)),
        int(measured.sum()),
        int((WAIT_NS + wobble)[WARMUP:].sum()),
        128 * 1e9 / float(measured.mean()),
    )


def steps(count: int = 200) -> Steps:
    rows = [(w, s, s * STEP_NS) for w, (first, end) in enumerate(windows_of(count)) for s in range(first, end)]
    return Steps(
        "Trace 'train' (step_num)",
        1.0,
        pa.table(
            {
                "host": [HOST] * len(rows),
                "window": [w for w, _, _ in rows],
                "step": [s for _, s, _ in rows],
                "start_ns": [start for _, _, start in rows],
                "end_ns": [start + STEP_NS for _, _, start in rows],
                "wait_ns": [WAIT_NS] * len(rows),
                "exposed_ns": [WAIT_NS - 5 * MS] * len(rows),
                "busy_ns": [BUSY_NS] * len(rows),
            },
            schema=STEP_TABLE,
        ),
        first_step_only=False,
    )


def input_stalls(count: int = 200) -> InputStalls:
    table = steps(count).table
    start = table.column("start_ns").to_numpy()
    wait = WAIT_NS + (np.arange(len(start)) % 10 - 5) * 4 * MS
    waits = pa.table(
        {
            "host": table.column("host"),
            "window": table.column("window"),
            "step": table.column("step"),
            "start_ns": start,
            "end_ns": start + wait,
            "exposed_ns": np.full(len(start), WAIT_NS - 5 * MS),
        },
        schema=WAIT_TABLE,
    )
    n = len(start)
    return InputStalls(
        n * WAIT_NS, n * (WAIT_NS - 5 * MS), n * STEP_NS, n, n * WAIT_NS, ("IteratorGetNextSync",), waits
    )


def idle_gaps(count: int = 200, device: str = DEVICE) -> IdleGaps:
    parts = (
        (GapCause.INPUT_WAIT, WAIT_NS, "IteratorGetNextSync"),
        (None, BUSY_NS, None),
        (GapCause.PYTHON, PYTHON_NS, None),
        (GapCause.HOST_OPERATION, OPERATION_NS, "DeserializeSparse"),
    )
    gaps, busy, last_end = [], [], None
    for window, (first, end) in enumerate(windows_of(count)):
        if last_end is not None:
            gaps.append((None, last_end, first * STEP_NS - last_end, GapCause.CAPTURE_GAP, None))
        for step in range(first, end):
            at = step * STEP_NS
            for cause, length, operation in parts:
                if cause is None:
                    busy.append((HOST, device, window, at, at + length))
                else:
                    gaps.append((window, at, length, cause, operation))
                at += length
        last_end = end * STEP_NS
    return IdleGaps(
        device,
        (
            DeviceTime(
                device, sum(b[4] - b[3] for b in busy), sum(g[2] for g in gaps if g[3] is not GapCause.CAPTURE_GAP)
            ),
        ),
        {cause: sum(gap[2] for gap in gaps if gap[3] is cause) for cause in GapCause},
        gap_table(gaps, device),
        busy_table(busy),
    )


def gap_table(gaps: list[tuple], device: str = DEVICE) -> pa.Table:
    """Build the gaps from (window, start_ns, duration_ns, cause, operation)."""
    columns = {
        "host": [HOST] * len(gaps),
        "device": [device] * len(gaps),
        "window": [gap[0] for gap in gaps],
        "start_ns": [gap[1] for gap in gaps],
        "duration_ns": [gap[2] for gap in gaps],
        "cause": [gap[3].value for gap in gaps],
        "host_operation": [gap[4] for gap in gaps],
    }
    for cause in GapCause:
        columns[f"{cause.value}_ns"] = [gap[2] if gap[3] is cause else 0 for gap in gaps]
    return pa.table(columns, schema=GAP_TABLE)


def busy_table(busy: list[tuple]) -> pa.Table:
    return pa.table(dict(zip(BUSY_TABLE.names, zip(*busy, strict=True), strict=True)), schema=BUSY_TABLE)


def step_breakdown(count: int = 200) -> StepBreakdown:
    table = steps(count).table
    parts = {
        "input_wait_ns": WAIT_NS,
        "device_compute_ns": BUSY_NS,
        "python_ns": PYTHON_NS,
        "host_operation_ns": OPERATION_NS,
    }
    columns = {name: table.column(name) for name in ("host", "window", "step", "start_ns", "end_ns")}
    columns |= {part: pa.array([parts.get(part, 0)] * table.num_rows) for part in PARTS}
    return sum_up(pa.table(columns, schema=PARTS_TABLE))


def retraces() -> Retraces:
    return Retraces(RETRACE_TABLE.empty_table())


def outlier_steps(rows: int = 2) -> OutlierSteps:
    """Return steps of 150 instead of 50 ms, one for every cause in turn."""
    causes = [("input_wait", "checkpoint", "flush")[row % 3] for row in range(rows)]
    columns = {
        "host": [HOST] * rows,
        "step": [20 + 10 * row for row in range(rows)],
        "start_ns": [(20 + 10 * row) * STEP_NS for row in range(rows)],
        "length_ns": [3 * STEP_NS] * rows,
        "level_ns": [STEP_NS] * rows,
        "cause": causes,
        "excess_ns": [2 * STEP_NS] * rows,
    }
    return OutlierSteps("all steps", 195, pa.table(columns, schema=OUTLIER_TABLE), 195 * 3 * STEP_NS)


def step_phases() -> StepPhases:
    return StepPhases(
        (
            PhaseTimes(Phase.WARMUP, 5, 0, 90.0 * MS, 200.0 * MS, 500 * MS, 150 * MS),
            PhaseTimes(Phase.FIRST_EPOCH, 95, 5, 60.0 * MS, 80.0 * MS, 5700 * MS, 3800 * MS),
            PhaseTimes(Phase.LATER_EPOCHS, 100, 100, 40.0 * MS, 50.0 * MS, 4000 * MS, 2000 * MS),
        )
    )


def hosts(count: int = 2, wait_ns: int = WAIT_NS) -> Hosts:
    """Return hosts of which the last one waits for input, 30 of 50 ms if not told otherwise, and the others for it."""
    last = np.arange(count) == count - 1
    columns = {
        "host": [f"worker-{number}" for number in range(count)],
        "steps": [40] * count,
        "median_ns": [STEP_NS] * count,
        "p95_ns": [STEP_NS] * count,
        "own_ns": np.where(last, STEP_NS, STEP_NS - wait_ns),
        "collective_ns": np.where(last, 0, wait_ns),
        "input_wait_ns": np.where(last, wait_ns, 0),
        "last_in": np.where(last, 40, 0),
        "held_up_ns": np.where(last, 40 * wait_ns, 0),
        "cause": [None] * (count - 1) + ["input_wait"],
    }
    return Hosts(pa.table(columns, schema=HOST_TABLE), 40, 40 * STEP_NS)


def file_sampling(files: int = 8, bins: int = 40, probe: bool = True) -> FileSampling:
    names = [f"/cache/digits/train-{index:05d}-of-{files:05d}.tfrecord" for index in range(files)]
    records = np.array([1000 + 500 * (index % 3) for index in range(files)])
    counts = np.array([[(file + 2 * b) % 5 * 8 for b in range(bins)] for file in range(files)])
    samples = counts.sum(axis=1)
    table = pa.table(
        {
            "file": names,
            "records": records,
            "size_bytes": 100 * records,
            "reads": samples + 3,
            "samples": samples if probe else [None] * files,
            "expected_share": records / records.sum(),
            "expected_share_by_bytes": records / records.sum(),
            "observed_share": samples / samples.sum(),
            "predicted_share": samples / samples.sum(),
        },
        schema=FILE_TABLE,
    )
    timeline = pa.table(
        {
            "file": [name for name in names for _ in range(bins)],
            "bin": list(range(bins)) * files,
            "step": [5.0 * b + 2 for b in range(bins)] * files,
            "samples": counts.ravel(),
        },
        schema=TIMELINE_TABLE,
    )
    point = np.arange(bins)
    coverage = pa.table(
        {
            "step": 5 * point + 4,
            "samples": (point + 1) * (int(samples.sum()) // bins),
            "records_percent": 84.0 * (point + 1) / bins,
            "even_percent": np.minimum(100.0, 110.0 * (point + 1) / bins),
            "files": np.minimum(files, 2 + point),
            "predicted_percent": 83.0 * (point + 1) / bins,
        },
        schema=COVERAGE_TABLE,
    )
    distance = 0.5 * float(np.abs(samples / samples.sum() - records / records.sum()).sum())
    return FileSampling(
        "samples" if probe else "reads",
        table,
        timeline if probe else TIMELINE_TABLE.empty_table(),
        distance,
        0.012,
        0,
        84.0 if probe else None,
        120 if probe else None,
        coverage=coverage if probe else COVERAGE_TABLE.empty_table(),
        labels=labels(10 if files <= 8 else 100, bins) if probe else None,
    )


def labels(count: int, bins: int) -> LabelMix:
    table = pa.table(
        {
            "label": [str(label) for label in range(count) for _ in range(bins)],
            "bin": list(range(bins)) * count,
            "step": [5.0 * b + 2 for b in range(bins)] * count,
            "samples": [(label + b) % 4 for label in range(count) for b in range(bins)],
        },
        schema=LABEL_TABLE,
    )
    return LabelMix(table, count, 0.21, 0.18)


def memory(points: int = 240) -> Memory:
    time_ns = np.arange(points) * (200 * STEP_NS // points)
    size = 900_000_000 + 40_000_000 * np.sin(np.arange(points) / 9)
    return Memory(
        940_000_000,
        900_000_000,
        pa.table(
            {"time_ns": time_ns, "rss_bytes": size.astype(np.int64), "flushing": np.zeros(points, bool)},
            schema=MEMORY_TABLE,
        ),
    )


def tf_data(points: int = 100) -> TfData:
    """Build a pipeline that decodes images in a parallel map: 30 ms of every wait are decoding."""

    def stage(number: int, name: str, path: str, **changes: Any) -> TracedStage:
        own = {"node": f"{name}Dataset:{9 - number}", "origin": StageOrigin.WRITTEN, "iterators": 1, "calls": 40}
        own |= {"elements": 40, "self_ns": MS, "observed_ns": 40 * STEP_NS, "parent": number - 1 if number else None}
        return TracedStage(number=number, name=name, path=path, **{**own, **changes})

    function = {
        "function_calls": 1280,
        "function_on_thread_ns": 2000 * MS,
        "function_latency": Tally(1280, 2400.0 * MS, 5.0 * MS * MS),
        "operations": (StageOperation("DecodeJpeg", 1280, 1500 * MS), StageOperation("Cast", 1280, 300 * MS)),
    }
    stages = (
        stage(0, "Root", "Root"),
        stage(1, "Prefetch", "Root::Prefetch", origin=StageOrigin.INJECTED, blocked_ns=1200 * MS, buffer_limit=2,
              buffered=Tally(40, 4.0, 4.0), empty_calls=36, autotuned=True),
        stage(2, "BatchV2", "Root::Prefetch::BatchV2", bytes_per_element=1_574_912.0),
        stage(3, "ParallelMapV2", "Root::Prefetch::BatchV2::ParallelMapV2", calls=1280, elements=1280, parallelism=2,
              autotuned=False, deterministic=True, blocked_ns=1100 * MS, **function),
        stage(4, "TFRecord", "Root::Prefetch::BatchV2::ParallelMapV2::TFRecord", calls=1284, elements=1280,
              iterators=4, self_ns=100 * MS),
    )  # fmt: skip
    shares = (
        PathShare(3, "DecodeJpeg", 900 * MS, 900 * MS),
        PathShare(3, "queueing", 200 * MS, 200 * MS),
        PathShare(4, "own work", 60 * MS, 60 * MS),
        PathShare(1, "not in this trace", 40 * MS, 40 * MS),
    )
    time = np.linspace(0, 40 * STEP_NS, points).astype(np.int64)
    history = {"host": [HOST] * points, "window": [0] * points, "start_ns": time, "stage": [1] * points}
    history |= {"buffered_elements": np.arange(points) % 2, "buffer_limit": [2] * points}
    history |= {"parallelism": [None] * points, "ram_used_bytes": [None] * points, "ram_budget_bytes": [None] * points}
    pool = {"host": [HOST], "window": [0], "start_ns": [0], "end_ns": [40 * STEP_NS], "busy_threads": [1.0]}
    return TfData(
        stages=stages,
        critical_path=CriticalPath(1200 * MS, 1200 * MS, shares),
        observed_ns=40 * STEP_NS,
        threadpool_size=2,
        cpu_budget=2,
        history=pa.table(history, schema=HISTORY_TABLE),
        pool=pa.table(pool, schema=POOL_TABLE),
    )


def allocators(points: int = 50) -> Allocators:
    columns = {"host": [HOST] * points, "window": [0] * points, "start_ns": [point * MS for point in range(points)]}
    columns |= {"allocator": ["GPU_0_bfc"] * points, "used_bytes": [50_000_000 + point % 7 for point in range(points)]}
    return Allocators((Allocator(HOST, "GPU_0_bfc", 60_000_000),), pa.table(columns, schema=ALLOCATOR_TABLE))


def profiler_cost(count: int = 200) -> ProfilerCost:
    windows = windows_of(count)
    table = pa.table(
        {
            "window": list(range(len(windows))),
            "name": [f"w{index:04d}" for index in range(len(windows))],
            "first_step": [first for first, _ in windows],
            "last_step": [end - 1 for _, end in windows],
            "start_ns": [first * STEP_NS for first, _ in windows],
            "stop_ns": [end * STEP_NS for _, end in windows],
            "flushed_ns": [(end + 6) * STEP_NS for _, end in windows],
            "start_cost_ns": [3 * MS] * len(windows),
            "stop_cost_ns": [1 * MS] * len(windows),
            "size_bytes": [1_500_000] * len(windows),
            "rss_growth_bytes": [30_000_000] * len(windows),
            "shortened": [False] * len(windows),
        },
        schema=WINDOW_TABLE,
    )
    return ProfilerCost(table, len(windows) * WINDOW_STEPS, 51.0 * MS, 50.0 * MS, 50.5 * MS)


def live_model(samples: int = 20) -> LiveModel:
    """Return a pipeline of a prefetch over a parallel map over a file reader, sampled every half second."""
    stages = (
        stage_work("Root", None, 1, 10_000),
        stage_work("Prefetch", 0, 1, 100_000, buffer_limit=4.0, buffered_elements=0.5, buffered_bytes=200_000.0),
        stage_work("MapAndBatch", 1, 1, 24 * MS, parallelism=2.0, buffered_elements=1.0, buffered_bytes=400_000.0),
        stage_work("TFRecord", 2, 128, 40_000, element_bytes=2_000.0),
    )
    rows = [(sample, stage) for sample in range(samples) for stage in range(len(stages))]
    table = pa.table(
        {
            "time_ns": [sample * 10 * STEP_NS for sample, _ in rows],
            "stage": [stage for _, stage in rows],
            "elements": [1280 if stage == 3 else 10 for _, stage in rows],
            "parallelism": [2.0 if stage == 2 else None for _, stage in rows],
            "buffered_elements": [sample % 2 if stage in (1, 2) else 0 for sample, stage in rows],
            "buffered_bytes": [400_000 * (sample % 2) if stage in (1, 2) else 0 for sample, stage in rows],
            "buffer_limit": [4.0 if stage == 1 else None for _, stage in rows],
        },
        schema=STAGE_TIMELINE,
    )
    return LiveModel(
        stages, table, samples, 0, (samples - 1) * 10 * STEP_NS, 10 * samples, 2, 8_000_000_000, 800_000, STEP_NS
    )


def written() -> WrittenPipeline:
    """Return what was written for the pipeline of :func:`tf_data`; TensorFlow put the prefetch in."""
    stages = (
        WrittenStage("BatchV2Dataset:7", "BatchDatasetV2", None, {"batch_size": 32}, (1,)),
        WrittenStage("ParallelMapV2Dataset:6", "ParallelMapDatasetV2", "map_decode", {"num_parallel_calls": 2}, (2,)),
        WrittenStage("TFRecordDataset:5", "TFRecordDataset", None, {}, ()),
    )
    return WrittenPipeline(stages, 2)


def stage_work(name: str, parent: int | None, visits: float, self_ns: float, **changes: object) -> StageWork:
    """Build a stage of a pipeline whose stages follow each other; ``parent`` is the index of the one before."""
    names = ("Root", "Prefetch", "MapAndBatch")[: 0 if parent is None else parent + 1]
    values: dict[str, object] = {
        "path": "::".join((*names, name)),
        "parent": parent,
        "visits_per_batch": float(visits),
        "self_ns": float(self_ns),
        "elements": int(200 * visits),
        "element_bytes": 400_000.0,
        "parallelism": None,
        "parallelism_tuned": False,
        "cycle_length": None,
        "buffer_limit": None,
        "buffer_tuned": False,
        "buffered_elements": None,
        "buffered_bytes": None,
        "peak_bytes": 400_000 if changes.get("buffered_bytes") else 0,
        "is_asynchronous": name in ("Prefetch", "MapAndBatch"),
    }
    return StageWork(**{**values, **changes})


def verdict() -> Verdict:
    return Verdict(
        VerdictClass.INPUT_BOUND,
        "The device waits for input 60 % of the time: preparing a batch takes 30 ms, training on it 15 ms.",
        (Evidence("Input wait", "60 % of the steps"), Evidence("Device idle", "70 %"), Evidence("Steps", "40")),
        Confidence.HIGH,
        (
            Suggestion("Add prefetch(AUTOTUNE) as the last stage", "Reading and training never overlap.", 30.0),
            Suggestion("Set num_parallel_calls=AUTOTUNE on the map", "One core decodes while the others idle."),
        ),
        stage="map",
        cause="under-parallel",
        step=JudgedStep(STEP_NS, 60.0, 30.0, 40, are_recorded=True),
    )


def diagnosis(**changes: object) -> Diagnosis:
    """Build a complete diagnosis; give parts by name to replace them."""
    nothing = Unavailable("The example run does not hold it.")
    parts: dict[str, object] = dict.fromkeys(analyses(), nothing) | {
        "source": Source("profiles/20260101-120000-baseline-ab12", "run", (HOST,), 4, 6_000_000, 120_000),
        "origin_epoch_ns": 1_767_268_800_000_000_000,
        "job_steps": job_steps(),
        "steps": steps(),
        "input_stalls": input_stalls(),
        "step_breakdown": step_breakdown(),
        "retraces": retraces(),
        "eager_ops": EagerOps(steps=40, ops=120, ops_ns=4 * MS, function_calls=40),
        "outlier_steps": outlier_steps(),
        "checkpoints": Checkpoints(count=3, total_ns=30 * MS, longest_ns=12 * MS, job_ns=1000 * MS),
        "iterator_starts": IteratorStarts(count=1, total_ns=2 * MS, longest_ns=2 * MS, job_ns=1000 * MS),
        "iterator_ends": IteratorEnds(count=2, total_ns=14 * MS, longest_ns=11 * MS, job_ns=1000 * MS),
        "step_phases": step_phases(),
        "hosts": hosts(wait_ns=0),
        "calibration": Calibration(16.0 * MS, 31.0 * MS, 50.0 * MS),
        "idle_gaps": idle_gaps(),
        "tf_data": tf_data(),
        "file_sampling": file_sampling(),
        "padding": padding(),
        "kept_outputs": kept_outputs(),
        "evaluation": evaluation(),
        "gpu_clocks": GpuClocks(102, 1755, 1965, 1980, 2.0),
        "memory": memory(),
        "allocators": allocators(),
        "profiler_cost": profiler_cost(),
        "live_model": live_model(),
        "written": written(),
        "job_load": JobLoad(cores=2.0, pool_threads=2, cores_used=0.8, cpu_ns_per_step=40.0 * MS, other_cores=0.1),
        "findings": (
            Finding(
                "sampling-skew",
                "Files are not sampled by size.",
                (Evidence("Beyond their file's share", "8 %"), Evidence("Chance alone", "1.2 %")),
            ),
        ),
        "verdict": verdict(),
    }
    return Diagnosis(**{**parts, **changes})


def evaluation(passes: int = 8) -> Evaluation:
    """Build passes of 10 batches after every 25 steps, which look at one held-out file of 320 examples."""
    events = [
        EvaluationEvent(
            one, 25 * (one + 1), one * 10**9, one * 10**9 + 200 * MS, 50 * MS, 10, 2 / (one + 1), one / passes
        )
        for one in range(passes)
    ]
    rows = [(one, 1, record, None) for one in range(passes) for record in range(32)]
    evaluated = pa.table(
        dict(zip(EVALUATED.schema.names, zip(*rows, strict=True), strict=True)), schema=EVALUATED.schema
    )
    files = [DataFile("train-0.tfrecord", 640, 10_000), DataFile("train-1.tfrecord", 320, 5_000)]
    return read_evaluation(JobEvents(events), evaluated, files, 0, held_out=1, is_rebuilt=True)


def kept_outputs(examples: int = 60) -> KeptOutputs:
    """Build the outputs of step 12: two classes, every fifth example is taken for the other one."""
    rows = [(12, n % 4, n, n % 2, [0.5, 1.5] if (n % 2) != (n % 5 == 0) else [1.5, 0.5]) for n in range(examples)]
    table = pa.table(dict(zip(OUTPUTS.schema.names, zip(*rows, strict=True), strict=True)), schema=OUTPUTS.schema)
    return read_kept_outputs(table, [DataFile(f"/data/train-{index}.tfrecord", 1000, 1) for index in range(4)])


def padding(batches: int = 205, percent: int = 22) -> Padding:
    """Build the padding of batches of 10 examples and 1,000 frames, from two percent less to two percent more."""
    rows = [(step, 10, 1000, 10 * (percent - 2 + step % 5)) for step in range(batches)]
    return measure_padding(
        pa.table(dict(zip(PADDING.schema.names, zip(*rows, strict=True), strict=True)), schema=PADDING.schema)
    )


def bare_diagnosis() -> Diagnosis:
    """Build a diagnosis of which every part is unavailable."""
    nothing = Unavailable("The run ended before the first step; run it again with more steps.")
    return diagnosis(
        **dict.fromkeys(analyses(), nothing),
        findings=(),
        verdict=Verdict(VerdictClass.UNKNOWN, "Nothing was measured.", (), Confidence.LOW),
    )
