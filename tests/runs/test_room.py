import pytest

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.presets import FEATURES_LOOKUP, SYNTHETIC
from pipeline_lab.options.run_options import set_options
from pipeline_lab.runs import room
from pipeline_lab.runs.launcher import launch
from tests.support.lab import Lab

TABLE_OF_400_MB = [("workload.vector_size", "1000"), ("workload.examples_per_file", "2000000")]


def test_a_table_larger_than_memory_is_refused_before_there_is_a_run(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "usable_memory_bytes", lambda: 300_000_000)
    options = set_options(FEATURES_LOOKUP.options, [*TABLE_OF_400_MB, ("workload.layout", "variable")])
    with pytest.raises(
        OptionsError, match=r"^The table of vectors takes 400 MB, but this job may use 300 MB of memory"
    ):
        launch(lab.store, options)
    assert lab.store.runs() == []


def test_a_table_that_stays_on_disk_may_be_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "usable_memory_bytes", lambda: 300_000_000)
    room.check_room(set_options(FEATURES_LOOKUP.options, TABLE_OF_400_MB))
    room.check_room(SYNTHETIC.options)
