"""When a recording of a script knows enough."""

from pathlib import Path

import pytest

from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.tuning.script import recorded_script
from pipeline_lab.tuning.script.recorded_script import FIT_STEPS, LOOP_STEPS, _trains
from tests.support.written_recipe import written_recipe

DATA = "ds = tf.data.Dataset.range(8).map(f).batch(2)\n"
FIT = written_recipe(DATA + "model.compile()\nmodel.fit(ds)\n")
LOOP = written_recipe(DATA + "for batch in ds:\n    pass\n")


class Steps:
    def __init__(self, count: int) -> None:
        self.num_rows = count


def test_a_script_that_only_looks_at_its_data_is_recorded_until_it_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(tmp_path)

    def trains(steps: int) -> bool:
        monkeypatch.setattr(recorded_script, "read_table", lambda *_: Steps(steps))
        return _trains(folder)

    assert not _trains(None)
    assert not trains(1000), "no dataset is read yet"
    folder.recipe.write_text(LOOP.to_json())
    assert not trains(FIT_STEPS), "evaluated, and looked at"
    assert trains(LOOP_STEPS)
    folder.recipe.write_text(FIT.to_json())
    assert not trains(FIT_STEPS - 1)
    assert trains(FIT_STEPS)
