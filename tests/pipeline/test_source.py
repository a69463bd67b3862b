import ast
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given

from pipeline_lab.options.presets import PRESETS, find_preset
from pipeline_lab.options.run_options import RunOptions, read_options, set_options
from pipeline_lab.pipeline.source import needs_probe, render_source
from pipeline_lab.stages.batches import BatchStage, RebatchStage, UnbatchStage
from pipeline_lab.stages.delivery import PrefetchToDeviceStage
from pipeline_lab.stages.functions import ParseStage, ViewsStage
from pipeline_lab.stages.order import RepeatStage
from pipeline_lab.stages.parts import FilterStage, RandomShardStage, ShardStage, SkipStage, TakeStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.stores import SaveStage, SnapshotStage
from pipeline_lab.workloads.images import ImagesWorkload
from pipeline_lab.workloads.records import RecordsWorkload
from pipeline_lab.workloads.synthetic import SyntheticWorkload
from tests.support.option_strategies import RUN_OPTIONS

GOLDEN = Path(__file__).parent / "golden"
USER_FILES = RunOptions(
    workload=ImagesWorkload(data="files", pattern="/data/*.tfrecord", image_feature="image/encoded"),
    pipeline=PipelineOptions(stages=(ReadStage(shuffle_files=True), ParseStage(), BatchStage(size=4))),
)
USER_VIEWS = RunOptions(
    workload=USER_FILES.workload,
    pipeline=PipelineOptions(
        stages=(ReadStage(), ParseStage(), ViewsStage(crops=3, size=16, mirror=False), BatchStage(size=4))
    ),
)
IMAGE_FOLDER = RunOptions(
    workload=ImagesWorkload(data="folder", folder="/data/flowers"),
    pipeline=PipelineOptions(stages=(ReadStage(mode="sample"), BatchStage(size=4), ParseStage())),
)
RECORDS = RunOptions(
    workload=RecordsWorkload(
        pattern="/data/*.tfrecord", features="label:int64, vector:float32[8], tokens:int64[*]", label="label"
    ),
    pipeline=PipelineOptions(stages=(ReadStage(), BatchStage(size=4), ParseStage())),
)
EVERY_PART = RunOptions(
    workload=SyntheticWorkload(map_ms=0),
    pipeline=PipelineOptions(
        stages=(
            ReadStage(mode="map", num_shards=2, shard_index=1),
            TakeStage(count=900),
            SkipStage(count=10),
            ShardStage(num_shards=3, index=2),
            RandomShardStage(num_shards=4, shard_size=50),
            FilterStage(keep_percent=25),
            BatchStage(size=8),
            UnbatchStage(),
            BatchStage(size=10),
            RebatchStage(size=4),
        )
    ),
)
STORES_AND_OPTIONS = RunOptions(
    workload=SyntheticWorkload(map_ms=0),
    pipeline=PipelineOptions(
        stages=(
            ReadStage(mode="flat_map", shuffle_files=True, num_shards=2),
            SaveStage(compression="gzip"),
            SnapshotStage(compression="none"),
            RepeatStage(),
            BatchStage(size=8),
            PrefetchToDeviceStage(buffer_size=3),
        ),
        private_threadpool_size=2,
        autotune_algorithm="stage_based",
        autotune_cpu_budget=4,
        autotune_ram_budget_mb=1500,
        deterministic=False,
        slack=True,
        warm_start=True,
    ),
)
WITH_READ_TIME = set_options(find_preset("unequal-files").options, [("workload.read_ms", "2")])
GOLDEN_OPTIONS = {
    **{preset.name: preset.options for preset in PRESETS},
    "read-time": WITH_READ_TIME,
    "spin": set_options(WITH_READ_TIME, [("workload.work", "spin")]),
    "slow-records": set_options(WITH_READ_TIME, [("workload.tail_every", "16"), ("workload.jitter_percent", "20")]),
    "varied-lengths": set_options(
        WITH_READ_TIME, [("workload.varied_lengths", "true"), ("pipeline.batch.mode", "padded_batch")]
    ),
    "generators": set_options(
        find_preset("generator").options,
        [
            ("workload.examples_per_generator", "4x2000"),
            ("workload.examples_at_once", "32"),
            ("pipeline.read.mode", "interleave"),
            ("pipeline.read.num_parallel_calls", "4"),
        ],
    ),
    "generator-threads": set_options(
        find_preset("generator-processes").options, [("workload.producer", "threads"), ("workload.ids", "strings")]
    ),
    **{
        f"features-{layout}": set_options(find_preset("features-lookup").options, [("workload.layout", layout)])
        for layout in ("constant", "variable", "sharded")
    },
    "user-files": USER_FILES,
    "user-views": USER_VIEWS,
    "image-folder": IMAGE_FOLDER,
    "records": RECORDS,
    "every-part": EVERY_PART,
    "stores-and-options": STORES_AND_OPTIONS,
}


@pytest.mark.parametrize("name", GOLDEN_OPTIONS)
def test_source_is_the_golden_file(name: str, compare_golden: Callable[[Path, str], None]) -> None:
    compare_golden(GOLDEN / f"{name}.py.txt", render_source(GOLDEN_OPTIONS[name]))


def test_probed_source_is_the_golden_file(compare_golden: Callable[[Path, str], None]) -> None:
    compare_golden(GOLDEN / "user-files-probed.py.txt", render_source(USER_FILES, probe=True))


def test_probed_source_of_records_is_the_golden_file(compare_golden: Callable[[Path, str], None]) -> None:
    compare_golden(GOLDEN / "records-probed.py.txt", render_source(RECORDS, probe=True))


@given(RUN_OPTIONS)
@pytest.mark.slow
def test_every_valid_pipeline_renders_to_code_that_compiles_and_needs_only_tensorflow(options: RunOptions) -> None:
    for probe in (False, True):
        tree = ast.parse(render_source(options, probe=probe))
        compile(tree, "pipeline.py", "exec")
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert [argument.arg for argument in functions["make_dataset"].args.args] == ["files", "cache_dir"]
        standard = {
            "collections",
            "concurrent",
            "functools",
            "hashlib",
            "itertools",
            "math",
            "multiprocessing",
            "os",
            "signal",
            "threading",
        }
        assert _imported(tree) <= {"tensorflow", "numpy", "time", "typing", *standard}


@given(RUN_OPTIONS)
@pytest.mark.slow
def test_what_a_user_typed_never_becomes_code(options: RunOptions) -> None:
    harmless = options.model_copy(
        update={"workload": options.workload.model_copy(update={"pattern": "/x"} if needs_probe(options) else {})}
    )
    assert _statements(render_source(options)) == _statements(render_source(harmless))


@given(RUN_OPTIONS)
@pytest.mark.slow
def test_equal_options_give_equal_text(options: RunOptions) -> None:
    again = read_options(options.to_json())
    assert _digest(render_source(options)) == _digest(render_source(again))


@given(RUN_OPTIONS)
@pytest.mark.slow
def test_the_probe_changes_only_pipelines_over_a_users_files(options: RunOptions) -> None:
    assert (render_source(options) != render_source(options, probe=True)) == needs_probe(options)


def test_exported_source_is_free_of_probe_code() -> None:
    assert "enumerate" not in render_source(USER_FILES)
    assert '"id"' not in render_source(USER_FILES)


def test_the_name_of_a_run_is_not_in_its_source() -> None:
    options = find_preset("baseline").options
    assert render_source(options.model_copy(update={"name": "another"})) == render_source(options)


def _imported(tree: ast.Module) -> set[str]:
    plain = {name.name for node in tree.body if isinstance(node, ast.Import) for name in node.names}
    return plain | {(node.module or "").split(".")[0] for node in tree.body if isinstance(node, ast.ImportFrom)}


def _statements(source: str) -> str:
    return ast.dump(ast.parse(source))


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()
