"""Where a call stands in the user's files."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from pipeline_lab.worker.recipe import places
from pipeline_lab.worker.recipe.places import WrittenSite, find_site, write_site

SCRIPT = """
class Dataset:
    def map(self, function, calls=1):
        SITES.append(find_site(sys._getframe(1)))
        return self
    batch = shuffle = map

def helper(dataset, build=lambda dataset: dataset.shuffle(1)):
    return build(dataset)

dataset = Dataset().map(print)
chain = (
    dataset
    .shuffle(  # mixes
        100,
    )
    # in between
    .map(lambda é: é + "ü", 2).batch(8)
)
helper(chain)
loop = [dataset.batch(size) for size in (1, 2)]
"""


@pytest.fixture(name="sites")
def _sites(tmp_path: Path) -> list[WrittenSite]:
    file = tmp_path / "user_script.py"
    file.write_text(SCRIPT)
    spec = importlib.util.spec_from_file_location("user_script", file)
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    found: list = []
    module.__dict__.update(SITES=found, find_site=find_site, sys=sys)
    spec.loader.exec_module(module)
    return [write_site(site, "map") for site in found if site is not None]


def test_each_call_of_a_chain_has_its_own_line_and_text(sites: list[WrittenSite]):
    said = [(site.place.name_line, site.text) for site in sites]
    assert said == [
        (11, ".map(print)"),
        (14, ".shuffle(100)"),
        (18, '.map(lambda é: é + "ü", 2)'),
        (18, ".batch(8)"),
        (8, ".shuffle(1)"),
        (21, ".batch(size)"),
        (21, ".batch(size)"),
    ]


def test_the_place_is_the_whole_expression_to_be_edited(sites: list[WrittenSite]):
    place = sites[2].place
    lines = SCRIPT.splitlines()
    assert (place.line, place.end_line, place.scope) == (13, 18, "<module>")
    assert lines[12][place.column :] == "dataset"
    assert lines[17].encode()[: place.end_column].decode().endswith(", 2)")
    assert sites[4].place.scope == "<lambda>"


def test_a_call_is_one_place_however_often_it_has_run() -> None:
    keys = set()

    class Read:
        def __iter__(self) -> Iterator[int]:
            site = find_site(sys._getframe(1))
            assert site is not None
            keys.add(site.key)
            return iter((1,))

    def loop() -> None:
        for _ in enumerate(Read()):
            pass

    places._position.cache_clear()
    for _ in range(50):  # Python writes shorter instructions for what runs often
        loop()
    assert len(keys) == 1
    assert places._position.cache_info().misses <= 2, "all instructions before it are gone through once"
    for _ in enumerate(Read()):
        pass
    assert len(keys) == 2, "another place has another key"
