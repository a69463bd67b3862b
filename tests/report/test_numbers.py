from dataclasses import replace

import pytest

from pipeline_lab.analysis.sampling.file_sampling import SameSource
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.chart_list import Topic
from pipeline_lab.report.numbers import headline_rows, section_rows
from tests.support import results


@pytest.mark.parametrize("section", Topic, ids=lambda section: section.name)
def test_every_section_has_numbers_of_the_report(section: Topic) -> None:
    diagnosis = results.diagnosis()
    rows = section_rows(section, diagnosis)
    assert rows
    assert set(rows) <= set(headline_rows(diagnosis))


def test_what_was_not_measured_has_no_number() -> None:
    assert section_rows(Topic.MEMORY, results.diagnosis(memory=Unavailable("No."))) == ()


def test_views_of_one_image_stand_beside_a_perfect_shuffle() -> None:
    sampling = replace(results.file_sampling(), same_source=SameSource(10, 128, 5.776, 3.528, 5.496))
    rows = dict(section_rows(Topic.SAMPLING, results.diagnosis(file_sampling=sampling)))
    assert rows["Examples of a batch that share their image"] == "5.78 of 128 (a perfect shuffle 3.53, predicted 5.5)"


def test_data_on_disk_stands_beside_memory() -> None:
    memory = replace(results.memory(), data_bytes=66_010_000)
    assert dict(section_rows(Topic.MEMORY, results.diagnosis(memory=memory)))["Data on disk"] == "66 MB"
