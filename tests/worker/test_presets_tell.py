"""What each preset is for, at a small size: the figure that it is about, with the telling option on and off.

Figures are counts and bytes, which a busy machine leaves alone. Those that rest on times are measured again where they do not hold.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.options.presets import find_preset
from pipeline_lab.options.run_options import set_options
from tests.support.patience import TRIES
from tests.worker.fakes import make_folder

pytestmark = pytest.mark.tensorflow

Settings = dict[str, str]
SMALL: Settings = {
    "training.steps": "12",
    "training.warmup_steps": "2",
    "training.calibrate": "false",
    "profiling.steps_per_window": "4",
    "profiling.every_steps": "100",
}


@dataclass(frozen=True)
class Told:
    """A preset's figure, and how it stands to the same with other settings.

    Attributes:
        preset: Its name.
        figure: Reads the figure from a diagnosis.
        size: Settings that make the job small.
        off: Settings that take the telling option back, or the preset without it.
        without: A stage that is left out to take it back.
        holds: Whether figure and figure without the option stand as they should.
        is_timed: The figures rest on times, or on what falls into a window, which a busy machine can spoil.
    """

    preset: str
    figure: Callable[[Any], Any]
    size: Settings
    off: Settings | str
    holds: Callable[[Any, Any], bool]
    without: str = ""
    is_timed: bool = False


def _sampling(name: str) -> Callable[[Any], Any]:
    return lambda diagnosis: getattr(diagnosis.file_sampling, name)


def _displacement(diagnosis: Any) -> float:
    return float(diagnosis.file_sampling.mixing.displacement)


def _samples(diagnosis: Any) -> list[int]:
    return list(diagnosis.file_sampling.table.column("samples").to_pylist())


def _ran(diagnosis: Any) -> set[str]:
    return {stage.name for stage in diagnosis.tf_data.stages}


def _generated(diagnosis: Any) -> int:
    return sum(stage.calls for stage in diagnosis.tf_data.stages if stage.name == "Generator")


def _padding(diagnosis: Any) -> float:
    return float(diagnosis.padding.percent)


def _allocated(diagnosis: Any) -> int:
    """Return how far the memory in use rose inside the windows, bytes; the peak is of the whole process, other jobs included."""
    table = diagnosis.allocators.table
    in_use = table.column("used_bytes").to_numpy()
    return int(in_use.max() - in_use.min())


def _deserializing(diagnosis: Any) -> int:
    """Return how long the host put sparse features together while the device idled, ns: sixteen features more count tenfold."""
    operations = diagnosis.idle_gaps.by_operation
    return sum(one.idle_ns for one in operations if one.operation == "DeserializeSparse")


SMALL_IMAGES = {
    "workload.examples_per_file": "64,64",
    "workload.image_size": "16",
    "pipeline.augment.crop": "16",
    "pipeline.batch.size": "16",
}
TINY_IMAGES = {"workload.image_size": "8"}
UNEQUAL = {"workload.examples_per_file": "100,200,300", "workload.map_ms": "0", "workload.compute_ms": "0"}
CLIPS = {"workload.clips_per_class": "16", "workload.longest_s": "20"}
ALTERNATING = TINY_IMAGES | {"training.steps": "30", "training.evaluate_every": "10", "training.evaluate_steps": "1"}

CASES = [
    Told("optimised", _ran, SMALL_IMAGES, "baseline", lambda on, off: "Prefetch" in on - off),
    Told("unequal-files", lambda d: _samples(d)[0], UNEQUAL, "sampled-by-size", lambda on, off: on > off),
    Told("equal-shards", _sampling("total_variation"), {}, "unequal-files", lambda on, off: on < off),
    Told("covering-shuffle", _displacement, {}, {"pipeline.shuffle.buffer_size": "2"}, lambda on, off: on > 2 * off),
    Told(
        "first-files",
        _sampling("unopened"),
        {"workload.compute_ms": "0", "workload.map_ms": "0"},
        {"pipeline.read.mode": "interleave", "pipeline.read.cycle_length": "30"},
        lambda on, off: on > 20 > off == 0,
    ),
    Told(
        "small-data", _displacement, TINY_IMAGES, {"pipeline.shuffle.buffer_size": "1"}, lambda on, off: on > 0.5 > off
    ),
    Told(
        "cached",
        _ran,
        {"workload.map_ms": "0", "workload.compute_ms": "0"},
        "synthetic",
        lambda on, off: any("Cache" in name for name in on) and not any("Cache" in name for name in off),
    ),
    Told("audio-bucketed", _padding, CLIPS, "audio-padded", lambda on, off: 0 < on < off),
    Told("audio-ragged", _padding, CLIPS, "audio-padded", lambda on, off: on == 0 < off),
    Told(
        "features-lookup",
        lambda diagnosis: diagnosis.memory.data_bytes,
        {"workload.examples_per_file": "200,200"},
        "features-replicated",
        lambda on, off: 5 * on < off,
    ),
    Told(
        "generator",
        _generated,
        {"workload.example_ms": "0", "workload.compute_ms": "0"},
        {"workload.examples_at_once": "32"},
        lambda on, off: on > 4 * off > 0,
        is_timed=True,
    ),
    Told(
        "python-between-steps",
        lambda diagnosis: diagnosis.verdict.cause,
        {},
        {"workload.python_ms": "0"},
        lambda on, off: on == "python" != off,
        is_timed=True,
    ),
    Told(
        "in-graph-loop",
        lambda diagnosis: diagnosis.steps.steps_per_marker,
        {"training.steps": "64"},
        {"training.loop": "custom", "training.steps_per_call": "1"},
        lambda on, off: (on, off) == (16, 1),
    ),
    Told(
        "changing-shapes",
        lambda diagnosis: diagnosis.retraces.count,
        {},
        {"workload.varied_lengths": "false", "pipeline.batch.mode": "batch"},
        lambda on, off: on > off,
    ),
    Told(
        "views-apart",
        lambda diagnosis: diagnosis.file_sampling.same_source.per_batch,
        {"workload.examples_per_file": "64,64", "workload.image_size": "16", "pipeline.views.size": "12"},
        "views-together",
        lambda on, off: on < off,
    ),
    Told(
        "wrong-order",
        _sampling("duplicates"),
        {**TINY_IMAGES, "training.steps": "30"},
        "small-data",
        lambda on, off: on > off == 0,
    ),
    Told(
        "synthetic",
        lambda diagnosis: diagnosis.input_stalls.wait_percent,
        {
            "training.steps": "20",
            "workload.compute_ms": "60",
        },  # longer than a batch takes: prefetch hides the whole wait
        {},
        lambda on, off: 2 * on < off,
        without="prefetch",
        is_timed=True,
    ),
    Told(
        "generator-processes",
        lambda diagnosis: diagnosis.job_load.children_cores,
        {"training.steps": "80", "workload.compute_ms": "20"},
        {"workload.producer": "in_line", "training.steps": "24"},
        lambda on, off: on > 5 * off,
        is_timed=True,
    ),
    Told(
        "sparse",
        _deserializing,
        {"training.replicas": "2"},
        {"workload.features": "1"},
        lambda on, off: on > 3 * off > 0,
        is_timed=True,
    ),
    Told(
        "keras-fit",
        lambda diagnosis: diagnosis.steps.steps_per_marker,
        {**SMALL_IMAGES, "training.steps": "32", "training.warmup_steps": "16", "profiling.every_steps": "16"},
        {"training.steps_per_call": "1"},
        lambda on, off: (on, off) == (16, 1),
    ),
    Told(
        "micro-batches",
        _allocated,
        {"workload.examples_per_file": "256,256", "training.steps": "6", "training.warmup_steps": "1"},
        {"training.accumulate": "1"},
        lambda on, off: 2 * on < off,
        is_timed=True,
    ),
    Told("random-shards", _sampling("coverage_percent"), ALTERNATING, "evaluation-rebuilt", lambda on, off: on > off),
    Told("evaluation-rebuilt", _sampling("coverage_percent"), ALTERNATING, "evaluation-kept", lambda on, off: on < off),
]


@pytest.fixture(scope="module")
def diagnose_once(ask_tensorflow: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Return a function that runs a preset with settings, without a stage, and diagnoses it; each once in a try."""
    found: dict[tuple[str, int], Diagnosis] = {}

    def diagnose_(preset: str, settings: Settings, without: str = "", *, attempt: int = 0) -> Diagnosis:
        options = set_options(find_preset(preset).options, list({**SMALL, **settings}.items()))
        stages = tuple(stage for stage in options.pipeline.stages if stage.stage != without)
        options = options.model_copy(update={"pipeline": options.pipeline.model_copy(update={"stages": stages})})
        key = options.to_json(), attempt
        if key not in found:
            folder = make_folder(tmp_path_factory.mktemp(preset) / "run", options)
            ask_tensorflow("run_here", folder=str(folder.path))
            found[key] = diagnose(folder.path)
        return found[key]

    return diagnose_


@pytest.mark.parametrize("told", CASES, ids=lambda told: told.preset)
def test_a_presets_figure_changes_with_the_option_that_it_is_about(
    diagnose_once: Callable[..., Diagnosis], told: Told
) -> None:
    preset, off = (told.off, {}) if isinstance(told.off, str) else (told.preset, told.off)
    seen = []
    for attempt in range(TRIES if told.is_timed else 1):
        with_option = told.figure(diagnose_once(told.preset, told.size, attempt=attempt))
        without = told.figure(diagnose_once(preset, {**told.size, **off}, told.without, attempt=attempt))
        if told.holds(with_option, without):
            return
        seen.append((with_option, without))
    pytest.fail(f"with and without: {seen}")
