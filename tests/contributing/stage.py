from pipeline_lab.advice.stage_costs import Machine, running_stages
from pipeline_lab.options.run_options import options_schema, read_options
from pipeline_lab.pipeline.lint import lint_pipeline
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.stages.registry import iterators_of
from pipeline_lab.ui.shared.draft import stages_to_offer, start_draft

STAGES = [{"stage": "read"}, {"stage": "repeat"}, {"stage": "ignore_errors"}, {"stage": "map"}, {"stage": "batch"}]
options = read_options({"workload": {"kind": "synthetic"}, "pipeline": {"stages": STAGES}})
assert "dataset = dataset.ignore_errors()" in render_source(options)
assert [remark.stage for remark in lint_pipeline(options) if remark.kind == "silent-errors"] == [2]
assert "IgnoreErrorsStage" in options_schema()["$defs"]
assert iterators_of("ignore_errors") == {"IgnoreErrors"}
assert running_stages(options, Machine(4, 8))[2].stage.stage == "ignore_errors"
assert options.pipeline.examples_for_batch(options.amounts)[2] == 128

assert "ignore_errors" in stages_to_offer(start_draft(options, ""))
