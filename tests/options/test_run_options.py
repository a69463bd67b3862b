"""Documents as earlier versions wrote them."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.presets import find_preset
from pipeline_lab.options.race_options import read_race_options, read_recorded_race
from pipeline_lab.options.run_options import (
    SCHEMA_VERSION,
    RunOptions,
    options_schema,
    read_options,
    read_options_file,
    set_options,
)
from tests.support.presets import BASELINE, FEATURES_LOOKUP, GENERATOR, OPTIMISED, SYNTHETIC, UNEQUAL_FILES

SPARSE, VARIED = "sparse", "changing-shapes"


def _sparse() -> dict[str, Any]:
    document = find_preset(SPARSE).options.model_dump(mode="json")
    document["workload"]["replicas"] = document["training"].pop("replicas")
    return document


def _varied() -> dict[str, Any]:
    document = find_preset(VARIED).options.model_dump(mode="json")
    for stage in document["pipeline"]["stages"]:
        if stage["stage"] == "batch":
            del stage["mode"]
    return document


def test_replicas_are_a_matter_of_training() -> None:
    options = find_preset(SPARSE).options
    assert options.training.replicas > 1
    assert read_options(_sparse()) == options
    assert read_options(json.dumps(_sparse())) == options
    race = {"arms": [_sparse(), _sparse()]}
    assert read_recorded_race(race).arms[1] == options
    with pytest.raises(OptionsError, match=r"set training\.replicas to 1"):
        read_race_options(race)


def test_examples_of_different_lengths_are_padded() -> None:
    options = find_preset(VARIED).options
    assert read_options(_varied()) == options
    assert read_race_options({"arms": [_varied(), _varied()]}).arms[1] == options


@pytest.mark.parametrize("workload", [None, 3, {}, {"kind": "sparse", "replicas": "many"}])
def test_what_was_never_right_is_refused_as_ever(workload: Any) -> None:
    with pytest.raises(OptionsError):
        read_options({"schema_version": 1, "workload": workload, "training": 7})


def changed(options: RunOptions, **parts: Any) -> dict[str, Any]:
    document = options.model_dump(mode="json")
    for part, values in parts.items():
        document[part] |= values
    return document


def images(*stages: dict[str, Any], **workload: Any) -> dict[str, Any]:
    return {"workload": {"kind": "images", **workload}, "pipeline": {"stages": list(stages)}}


def varied(*stages: dict[str, Any]) -> dict[str, Any]:
    return {"workload": {"kind": "synthetic", "varied_lengths": True}, "pipeline": {"stages": list(stages)}}


READ, PARSE, BATCH = {"stage": "read"}, {"stage": "parse"}, {"stage": "batch", "size": 4}
RAGGED = {**BATCH, "mode": "ragged_batch"}


def test_settings_that_only_fit_together_are_taken_together():
    changed = set_options(BASELINE.options, [("workload.pattern", "/data/*.tfrecord"), ("workload.data", "files")])
    assert changed.workload.pattern == "/data/*.tfrecord"
    with pytest.raises(OptionsError, match=r"^workload: data = files needs a pattern"):
        set_options(BASELINE.options, [("workload.data", "files")])


def test_json_comes_back_equal() -> None:
    assert read_options(SYNTHETIC.options.to_json()) == SYNTHETIC.options
    assert read_options(SYNTHETIC.options.model_dump(mode="json")) == SYNTHETIC.options


def test_the_document_names_its_schema() -> None:
    assert json.loads(SYNTHETIC.options.to_json())["schema_version"] == SCHEMA_VERSION
    with pytest.raises(OptionsError, match="schema_version"):
        read_options(SYNTHETIC.options.model_dump() | {"schema_version": 2})


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (images(READ, BATCH), "the images workload needs a parse stage"),
        (
            images(READ, {"stage": "map"}, PARSE, BATCH),
            "map does not fit the images workload: its own are parse and views and augment",
        ),
        (
            images(READ, PARSE, {"stage": "augment", "crop": 64}, BATCH),
            "a crop of 64 does not fit into padded images of 40",
        ),
        (images(READ, PARSE, {"stage": "augment", "cutout": 33}, BATCH), "a cutout of 33 is larger than the image"),
        (images(READ, PARSE, {"stage": "augment", "crop": 8, "cutout": 9}, BATCH), "a cutout of 9 is larger"),
        (images(READ, PARSE, BATCH, examples_per_file="3"), "3 examples never fill a batch of 4 with drop_remainder"),
        (
            {"workload": {"kind": "synthetic"}, "pipeline": {"stages": [READ, PARSE, BATCH]}},
            "parse does not fit the synthetic workload: its own are map",
        ),
        (images(READ, PARSE, {**BATCH, "mode": "padded_batch"}), "padded_batch is for examples of different lengths"),
        (varied(READ, BATCH), "batch stacks examples of one length, and those of the synthetic workload differ"),
        (
            varied(READ, RAGGED, {"stage": "map"}),
            "records of different lengths are parsed one by one; put map before",
        ),
        (varied(READ, RAGGED, {"stage": "rebatch"}), "use unbatch and batch, not rebatch"),
        (varied(READ, {**RAGGED, "num_parallel_calls": 2}), "mode = ragged_batch has no num_parallel_calls"),
        ({"workload": {"kind": "speech"}, "pipeline": {"stages": [READ, BATCH]}}, "workload"),
    ],
)
def test_a_contradiction_is_one_clear_sentence(document: dict[str, Any], sentence: str) -> None:
    with pytest.raises(OptionsError, match=sentence) as caught:
        read_options(document)
    assert str(caught.value).endswith(".")


def test_repeats_multiply_the_data() -> None:
    stages = [READ, {"stage": "repeat", "count": 2}, PARSE, BATCH]
    assert read_options(images(*stages, examples_per_file="2")).records == 2
    with pytest.raises(OptionsError, match="2 examples never fill"):
        read_options(images(READ, {"stage": "repeat", "count": 1}, PARSE, BATCH, examples_per_file="2"))


def test_records_are_counted_where_we_write_the_files() -> None:
    assert UNEQUAL_FILES.options.records == 6000
    own = images(READ, PARSE, BATCH, data="files", pattern="/data/*")
    assert read_options(own).records is None


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', b"\xff", "{}"])
def test_what_is_no_options_document_is_refused(text: str | bytes) -> None:
    with pytest.raises(OptionsError):
        read_options(text)


def test_a_file_is_read_and_its_absence_told(tmp_path: Path) -> None:
    file = tmp_path / "options.json"
    file.write_text(BASELINE.options.to_json())
    assert read_options_file(file) == BASELINE.options
    with pytest.raises(OptionsError, match=r"Cannot read the options file .*: No such file"):
        read_options_file(tmp_path / "missing.json")


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [
        ("training.steps", "50", lambda options: options.training.steps == 50),
        ("name", "my run", lambda options: options.name == "my run"),
        ("pipeline.prefetch.buffer_size", "7", lambda options: options.pipeline.find("prefetch").buffer_size == 7),
        ("pipeline.stages.3.size", "8", lambda options: options.pipeline.batch_size == 8),
        ("pipeline.stages.4", '{"stage": "cache"}', lambda options: options.pipeline.stages[4].stage == "cache"),
        ("workload.examples_per_file", "10,20", lambda options: options.records == 30),
        ("profiling.enabled", "false", lambda options: not options.profiling.enabled),
        (
            "pipeline.map.num_parallel_calls",
            "autotune",
            lambda options: options.pipeline.stages[2].num_parallel_calls == "autotune",
        ),
    ],
)
def test_one_value_can_be_set(path: str, value: str, found: Any) -> None:
    assert found(set_options(SYNTHETIC.options, [(path, value)]))


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (
            "training.stepz",
            "5",
            "There is no option 'training.stepz'; did you mean training.steps?",
        ),
        (
            "training.epochs",
            "5",
            "There is no option 'training.epochs'; training has accumulate, calibrate, checkpoint_",
        ),
        ("trainin.steps", "5", "did you mean training.steps?"),
        ("buffer_size", "5", "There is no option 'buffer_size'; did you mean pipeline.prefetch.buffer_size?"),
        ("pipeline.prefech.buffer_size", "5", "did you mean pipeline.prefetch.buffer_size?"),
        ("pipeline.prefetch", "5", "'pipeline.prefetch' holds several options; name one of buffer_size, stage."),
        (
            "pipeline.cache.where",
            "file",
            "the pipeline has no stage 'cache', only read, repeat, map, batch, prefetch; add it with --set 'pipeline.stages=",
        ),
        ("pipeline.stages.9.size", "5", "'9' should be a number from 0 to 4"),
        ("training.steps", "-5", "training.steps should be a whole number from 1 to 100000000 or null, but is -5."),
        ("training.steps", "many", "but is 'many'."),
        (
            "pipeline.map.num_parallel_calls",
            "zero",
            "pipeline.stages.2.num_parallel_calls should be a whole number from 1 to 1024, autotune or null, but is 'zero'.",
        ),
        (
            "training.loop",
            "in_grap",
            "training.loop should be one of custom, in_graph or keras_fit, but is 'in_grap'; did you mean in_graph?",
        ),
        ("training.calibrate", "maybe", "training.calibrate should be true or false, but is 'maybe'."),
        ("training.learning_rate", "0", "training.learning_rate should be a number above 0 and at most 100, but is 0."),
        ("workload.kind", "sythetic", "workload.kind cannot be 'sythetic'; did you mean synthetic?"),
        ("workload.kind", "speech", "workload.kind cannot be 'speech'; it should be one of images, audio, "),
        ("workload.kind", "images", "workload has no options element_bytes, read_ms, .*; it has classes, "),
        ("workload.examples_per_file", "[0]", "workload.examples_per_file.0 should be a whole number from 1 to"),
        ("name", "x" * 201, "name should be text of at most 200 characters, but is"),
        (
            "workload",
            '{"kind": "images", "image_feature": ""}',
            "workload.image_feature should be text of 1 to 200 characters, but is ''.",
        ),
        (
            "pipeline.stages.4",
            '{"stage": "service", "address": "host"}',
            "pipeline.stages.4.address: an address is written host:port, such as",
        ),
        ("training.xla", "true", "training.xla is for the step of the images workload"),
        ("training.precision", "mixed_float16", "training.precision is for the steps of the images, audio and records"),
        ("training.held_out_files", "1", "training: held_out_files are for evaluations; set evaluate_every"),
        ("training.accumulate", "2", "training.accumulate is for the step of the images workload"),
        ("training.replicas", "2", "replicas share the batches of the images and the sparse workload"),
        ("training.steps_per_call", "4", "training: a custom loop calls every step itself"),
    ],
)
def test_a_wrong_setting_names_the_place(path: str, value: str, sentence: str) -> None:
    with pytest.raises(OptionsError, match=sentence.replace("?", r"\?")):
        set_options(SYNTHETIC.options, [(path, value)])


def test_setting_a_value_leaves_the_given_options_alone() -> None:
    before = SYNTHETIC.options.to_json()
    set_options(SYNTHETIC.options, [("training.steps", "5")])
    assert SYNTHETIC.options.to_json() == before


def test_the_schema_describes_every_part() -> None:
    schema = options_schema()
    assert set(schema["properties"]) == set(RunOptions.model_fields)
    assert "PrefetchStage" in schema["$defs"]


def test_unknown_names_are_named() -> None:
    with pytest.raises(OptionsError, match=r"training\.epochs"):
        read_options(changed(SYNTHETIC.options, training={"epochs": 3}))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"layout": "replicated"}, "records of the replicated layout hold their vectors; remove the lookup stage"),
        (
            {"layout": "constant", "examples_per_file": 3_000_000, "captions_per_image": 20},
            "a table of 2.46 GB cannot be a constant: TensorFlow writes constants into its graph",
        ),
    ],
    ids=["replicated", "constant"],
)
def test_a_layout_that_cannot_be_is_explained(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(OptionsError, match=sentence):
        read_options(changed(FEATURES_LOOKUP.options, workload=settings))


@pytest.mark.parametrize(
    ("stages", "sentence"),
    [
        (["read", "parse", "batch"], "the lookup layout needs a lookup stage"),
        (["read", "lookup", "parse", "batch"], "put parse before it"),
    ],
    ids=["missing", "early"],
)
def test_a_table_is_read_behind_parse(stages: list[str], sentence: str) -> None:
    with pytest.raises(OptionsError, match=sentence):
        read_options({"workload": {"kind": "features"}, "pipeline": {"stages": [{"stage": kind} for kind in stages]}})


def test_only_variables_are_read_by_the_step() -> None:
    stages = [{"stage": kind} for kind in ("read", "parse", "batch")]
    for layout in ("variable", "sharded"):
        read_options({"workload": {"kind": "features", "layout": layout}, "pipeline": {"stages": stages}})


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ([("training.xla", "true"), ("training.replicas", "2")], "training.xla compiles the step of one device"),
        (
            [("training.replicas", "2"), ("pipeline.batch.drop_remainder", "false")],
            "without examples; set drop_remainder",
        ),
        (
            [("training.accumulate", "64"), ("pipeline.batch.size", "32")],
            "a replica's 32 examples into 64 micro-batches",
        ),
        ([("training.replicas", "2"), ("pipeline.stages.6", '{"stage": "prefetch_to_device"}')], "use prefetch"),
    ],
)
def test_what_replicas_cannot_do_is_said(settings: list[tuple[str, str]], sentence: str) -> None:
    with pytest.raises(OptionsError, match=sentence):
        set_options(OPTIMISED.options, settings)


@pytest.mark.parametrize(
    ("stages", "sentence"),
    [
        ([{"stage": "views"}, PARSE, BATCH], "views needs decoded images; put parse before it"),
        ([PARSE, BATCH, {"stage": "views"}], "views makes examples out of single images; put it before batch"),
        ([PARSE, {"stage": "views", "size": 33}, BATCH], "views of 33 pixels do not fit into images of 32 pixels"),
        (
            [PARSE, {"stage": "views", "size": 20}, {"stage": "augment", "pad": 0, "crop": 24}, BATCH],
            "a crop of 24 does not fit into padded images of 20 pixels",
        ),
    ],
    ids=["before parse", "behind batch", "too large", "smaller than the crop"],
)
def test_views_that_cannot_be_made_are_explained(stages: list[dict[str, Any]], sentence: str) -> None:
    with pytest.raises(OptionsError, match=sentence):
        read_options(images(READ, *stages))


def test_names_do_not_go_to_a_device() -> None:
    with pytest.raises(OptionsError, match="strings cannot be copied to a device"):
        set_options(
            GENERATOR.options, [("workload.ids", "strings"), ("pipeline.stages.3", '{"stage": "prefetch_to_device"}')]
        )


@pytest.mark.parametrize(
    ("preset", "settings", "sentence"),
    [
        ("generator", [("training.page_cache", "cold")], "generators read no file that could be cold"),
        ("generator", [("training.evaluate_every", "5"), ("training.held_out_files", "1")], "has no files that"),
        ("evaluation-kept", [("training.held_out_files", "8")], "leaves no file to train on"),
    ],
)
def test_data_that_cannot_be_cold_or_held_out_is_said(
    preset: str, settings: list[tuple[str, str]], sentence: str
) -> None:
    with pytest.raises(OptionsError, match=sentence):
        set_options(find_preset(preset).options, settings)


def test_held_out_files_are_none_of_those_that_train() -> None:
    assert find_preset("evaluation-kept").options.file_sizes == (256,) * 7


def test_outputs_are_kept_where_a_step_computes_them_and_labels_stand_beside_them() -> None:
    for settings in ([], [("training.replicas", "2")], [("training.loop", "keras_fit")]):
        kept = set_options(BASELINE.options, [*settings, ("training.keep_outputs_of_step", "3")])
        assert kept.training.keep_outputs_of_step == 3
    with pytest.raises(OptionsError, match="the step of the synthetic workload takes time and computes nothing"):
        set_options(SYNTHETIC.options, [("training.keep_outputs_of_step", "3")])
    records = {"kind": "records", "pattern": "/data/*", "features": "x:float32"}
    stages = {"stages": [READ, PARSE, BATCH]}
    with pytest.raises(OptionsError, match=r"set workload\.label, or leave it out"):
        read_options({"workload": records, "pipeline": stages, "training": {"keep_outputs_of_step": 3}})


def test_the_advice_for_a_stage_that_is_missing_can_be_pasted() -> None:
    options = find_preset("synthetic").options
    with pytest.raises(OptionsError) as refused:
        set_options(options, [("pipeline.cache.where", "file")])
    *_, setting = shlex.split(str(refused.value).removesuffix("."))
    path, _, value = setting.partition("=")
    added = set_options(options, [(path, value)])
    assert "cache" in [stage.stage for stage in added.pipeline.stages]
    assert set_options(added, [("pipeline.cache.where", "file")]).pipeline.find("cache") is not None
