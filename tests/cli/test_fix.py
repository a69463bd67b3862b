"""``fix`` of what an earlier search found: the diff, and the files once it is applied."""

import json
from pathlib import Path

import pytest

from pipeline_lab.options.tune_options import read_script_tune
from pipeline_lab.pipeline.changes import Change
from pipeline_lab.pipeline.rewrites import find_changes
from pipeline_lab.pipeline.samples import Proof, ProofOutcome
from pipeline_lab.pipeline.source_edits import edit_sources
from pipeline_lab.runs.record import RunState
from pipeline_lab.tuning.script.fix import Fix, to_json
from pipeline_lab.tuning.script.proving import LeftAlone
from tests.cli.support import call
from tests.support.lab import Lab
from tests.support.presets import SYNTHETIC
from tests.support.run_folders import set_state
from tests.support.written_recipe import PATH, written_recipe

TEXT = "import tensorflow as tf\nds = tf.data.Dataset.range(8).map(f).batch(2)\nmodel.fit(ds)\n"
PROVED = Proof(ProofOutcome.EQUAL, "Equal, element by element: 4 and 4 elements in 2 passes.", (4, 4), True)


@pytest.fixture(name="script")
def _script(lab: Lab) -> Path:
    script = lab.store.root.parent / "train.py"
    script.write_text(TEXT)
    return script


def found_before(lab: Lab, script: Path, *, is_sure: bool) -> str:
    """Write what a search found that proposes to prefetch; return its id."""
    recipe = written_recipe(TEXT)
    changes: dict[str, Change] = {each.rewrite: each for each in find_changes(recipe)}
    edited = edit_sources(recipe, [changes["prefetch"]], {PATH: TEXT})
    fix = Fix((changes["prefetch"],), edited, PROVED, (LeftAlone(changes["cache"], "Too large."),))
    files = {str(script): [TEXT, edited.texts[PATH]]}
    folder = lab.store.create(
        read_script_tune({"script": "train.py", "folder": str(script.parent), "budget_s": 60.0}), ""
    )
    folder.fix.write_text(json.dumps({**to_json(fix), "files": files, "run": "a-run", "is_sure": is_sure}))
    set_state(folder, RunState.DONE)
    return folder.id


def test_what_was_found_is_shown_and_written_with_a_backup(lab: Lab, script: Path) -> None:
    search = found_before(lab, script, is_sure=True)
    shown = call("fix", "--from", search, "--store", lab.store.root)
    assert shown.exit_code == 0
    assert "+ds = tf.data.Dataset.range(8).map(f).batch(2).prefetch(tf.data.AUTOTUNE)" in shown.stdout
    assert PROVED.sentence in shown.output
    assert "Too large." in shown.output
    assert script.read_text() == TEXT, "nothing is written unasked"
    applied = call("fix", "--from", search, "--apply", "--store", lab.store.root)
    assert applied.exit_code == 0
    there = f"cd {script.parent} && pipeline-lab watch --store {lab.store.root} train.py"
    assert there in " ".join(applied.output.split()), "its path is one from where the search began"
    assert ".prefetch(tf.data.AUTOTUNE)" in script.read_text()
    assert script.with_name("train.py.orig").read_text() == TEXT


def test_the_latest_is_the_latest_search_though_its_race_came_later(lab: Lab, script: Path) -> None:
    found_before(lab, script, is_sure=True)
    later = lab.store.create(SYNTHETIC.options, "").id
    assert PROVED.sentence in call("fix", "--from", "latest", "--store", lab.store.root).output
    refused = call("fix", "--from", later, "--store", lab.store.root)
    assert f"{later} is a run, and no search for changes of a script." in " ".join(refused.output.split())


def test_what_is_not_decided_is_not_written(lab: Lab, script: Path) -> None:
    search = found_before(lab, script, is_sure=False)
    refused = call("fix", "--from", search, "--apply", "--store", lab.store.root)
    assert refused.exit_code != 0
    assert script.read_text() == TEXT
    call("fix", "--from", search, "--apply", "--no-race", "--store", lab.store.root)
    assert ".prefetch(tf.data.AUTOTUNE)" in script.read_text(), "it was asked for all the same"


def test_what_recorded_no_script_is_refused_before_a_search_begins(lab: Lab, script: Path) -> None:
    search = found_before(lab, script, is_sure=True)
    run = lab.store.create(SYNTHETIC.options, "").id
    before = len(list(lab.store.runs()))
    for named, told in ((search, f"use --from {search}"), (run, "`pipeline-lab watch` recorded")):
        refused = call("fix", script, "--run", named, "--store", lab.store.root)
        assert refused.exit_code != 0
        assert told in " ".join(refused.output.split())
    assert len(list(lab.store.runs())) == before


def test_a_search_that_was_stopped_is_told_with_the_command_that_goes_on(lab: Lab, script: Path) -> None:
    folder = lab.store.folder(found_before(lab, script, is_sure=True))
    set_state(folder, RunState.CANCELLED, "It was stopped.")
    told = " ".join(call("fix", "--from", folder.id, "--store", lab.store.root).output.split())
    assert f"Search {folder.id}: canceled. It was stopped. Continue with: pipeline-lab tune --store" in told
