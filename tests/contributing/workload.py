import importlib.util

from pipeline_lab.options.run_options import options_schema, read_options, set_options
from pipeline_lab.pipeline.lint import lint_pipeline
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.ui.shared.draft import change_workload, start_draft
from pipeline_lab.workloads.registry import WORKLOADS

stages = [{"stage": name} for name in ("read", "repeat", "parse", "batch")]
options = read_options({"workload": {"kind": "toy"}, "pipeline": {"stages": stages}})
assert options.records == 4000
assert set_options(options, [("workload.examples_per_file", "2x10")]).file_sizes == (10, 10)
assert options.elements[0].example_bytes == 8

source = render_source(options)
compile(source, "pipeline.py", "exec")
assert "def parse(record" in source

assert {remark.kind for remark in lint_pipeline(options)}
assert "ToyWorkload" in options_schema()["$defs"]

before = [{"stage": name} for name in ("read", "repeat", "map", "batch")]
synthetic = read_options({"workload": {"kind": "synthetic"}, "pipeline": {"stages": before}})
draft = change_workload(start_draft(synthetic, ""), "toy")
assert [stage["stage"] for stage in draft.stages] == ["read", "repeat", "parse", "batch"]
assert next(iter(WORKLOADS)) == "toy"

half = importlib.util.find_spec("pipeline_lab.worker.workloads.toy")
assert half is not None
