import json
from pathlib import Path

import pytest

from pipeline_lab.options.presets import PRESETS
from pipeline_lab.options.run_options import options_schema, read_options
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.launch.launcher import wait
from tests.cli.support import call
from tests.runs.data_files.test_tfrecord import write_records
from tests.support.examples import example, floats, int64s
from tests.support.lab import Lab
from tests.support.presets import BASELINE


def test_every_preset_is_listed_with_its_question() -> None:
    text = call("presets").stdout
    assert all(preset.name in text for preset in PRESETS)
    assert [entry["name"] for entry in json.loads(call("presets", "--json").stdout)] == [p.name for p in PRESETS]


def test_the_schema_is_printed() -> None:
    assert json.loads(call("options").stdout) == options_schema()


@pytest.mark.slow
def test_a_preset_is_printed_to_be_edited() -> None:
    assert read_options(call("options", "baseline").stdout) == BASELINE.options
    changed = call("options", "baseline", "--set", "training.steps=7", "--set", "name=mine").stdout
    assert (read_options(changed).training.steps, read_options(changed).name) == (7, "mine")


def test_a_stage_is_added_at_its_usual_place() -> None:
    added = read_options(call("options", "synthetic", "--add", "shuffle=2048", "--add", "cache").stdout).pipeline
    plain = read_options(call("options", "synthetic").stdout).pipeline
    shuffle = added.find("shuffle")
    assert shuffle is not None
    assert shuffle.model_dump()["buffer_size"] == 2048
    assert len(added.stages) == len(plain.stages) + 2


def test_a_stage_that_cannot_be_added_says_why() -> None:
    refused = call("options", "optimised", "--add", "prefetch=2")
    assert refused.exit_code == 2
    assert "--set pipeline.prefetch.buffer_size=VALUE" in " ".join(refused.stderr.split())
    unknown = call("options", "baseline", "--add", "prefetsch")
    assert "Did you mean prefetch?" in " ".join(unknown.stderr.split())
    assert "takes no value" in " ".join(call("options", "baseline", "--add", "cache=2").stderr.split())


def test_step_times_are_copied_from_a_run(tmp_path: Path) -> None:
    emulated = ("options", "synthetic", "--set", "training.device=emulated", "--set")
    copied = read_options(call(*emulated, "training.step_times_ms=sample-baseline", "--store", tmp_path).stdout)
    assert 20 <= len(copied.training.step_times_ms) <= 200
    given = read_options(call(*emulated, "training.step_times_ms=2x20,35.5").stdout)
    assert given.training.step_times_ms == (20, 20, 35.5)
    refused = call(*emulated, "training.step_times_ms=no-such-run", "--store", tmp_path)
    assert refused.exit_code == 1
    assert "no run of that id" in refused.stderr


def test_options_for_ones_own_records_go_by_what_they_hold(tmp_path: Path) -> None:
    write_records(tmp_path / "a.tfrecord", [example(label=int64s(1), vector=floats(1, 2))])
    printed = call("options", "--records", tmp_path / "*.tfrecord", "--set", "training.steps=7").stdout
    assert read_options(printed).workload.features == "label:int64, vector:float32[2]"
    assert read_options(printed).training.steps == 7
    assert call("options", "--records", tmp_path / "none*").exit_code == 1
    assert call("options", "baseline", "--records", tmp_path / "*").exit_code == 2


def test_wrong_names_are_wrong_usage() -> None:
    assert call("options", "best").exit_code == 2
    assert call("options", "--set", "training.steps=7").exit_code == 2


def test_the_source_of_a_preset_a_file_and_a_run_is_the_same_text(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "options.json").write_text(BASELINE.options.to_json())
    assert call("code", "baseline").stdout == render_source(BASELINE.options)
    assert call("code", tmp_path / "options.json").stdout == render_source(BASELINE.options)
    folder = lab.launch("done")
    wait(folder)
    assert call("code", folder.id, "--store", lab.store.root).stdout == folder.source.read_text()


def test_code_of_nothing_is_one_sentence(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "options.json").write_text("{")
    assert call("code", tmp_path / "options.json").exit_code == 2
    assert call("code", "gone", "--store", lab.store.root).exit_code == 1
    folder = lab.launch("done")
    wait(folder)
    folder.source.write_bytes(b"\xff\xfe")
    assert "is damaged: it is not UTF-8 text" in call("code", folder.id, "--store", lab.store.root).stderr
    folder.source.unlink()
    ended = call("code", folder.id, "--store", lab.store.root)
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert "has no pipeline source" in ended.stderr


def test_a_preset_is_not_saved_and_removed_at_once(tmp_path: Path) -> None:
    ended = call("presets", "--save", "mine", "baseline", "--remove", "other", "--store", tmp_path)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "exclude each other" in ended.stderr
    assert list(tmp_path.iterdir()) == []
