import gc
from collections.abc import Iterator

import pytest

from pipeline_lab.collecting import collect_as_usual, collect_rarely, loading


@pytest.fixture(autouse=True)
def usual_collections() -> Iterator[None]:
    threshold = gc.get_threshold()
    yield
    gc.set_threshold(*threshold)
    gc.enable()


def test_nothing_is_collected_while_something_loads_and_what_was_loaded_stays_out_of_later_collections():
    with loading():
        assert not gc.isenabled()
        loaded = [[number] for number in range(1000)]
    assert gc.isenabled()
    assert not {id(each) for each in loaded} & {id(each) for each in gc.get_objects()}


def test_collections_go_on_after_something_that_cannot_be_loaded():
    with pytest.raises(ImportError), loading():
        raise ImportError
    assert gc.isenabled()


def test_an_app_that_a_command_starts_collects_what_its_visitors_leave():
    collect_as_usual()
    usual = gc.get_threshold()
    collect_rarely()
    assert gc.get_threshold()[0] > 100 * usual[0]
    collect_as_usual()
    assert gc.get_threshold() == usual
