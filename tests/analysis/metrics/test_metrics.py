"""Every number declares all its parts, stands in the JSON document where it says, and is in the documentation."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.metrics.metric import Metric, Topic, Unit
from pipeline_lab.analysis.metrics.metric_rows import headline, number_rows, topic_rows
from pipeline_lab.analysis.metrics.metrics import HEADLINE, METRICS, find_metric
from pipeline_lab.analysis.sampling.file_sampling import SameSource
from pipeline_lab.errors import Unavailable
from pipeline_lab.statistics.mixing import Mixing
from tests.support import results


@pytest.mark.parametrize("section", Topic, ids=lambda section: section.name)
def test_every_section_has_numbers_of_the_report(section: Topic) -> None:
    diagnosis = results.diagnosis()
    rows = topic_rows(section, diagnosis)
    assert rows
    assert set(rows) <= set(number_rows(diagnosis))


def test_what_was_not_measured_has_no_number() -> None:
    rows = topic_rows(Topic.MEMORY, results.diagnosis(memory=Unavailable("No.")))
    assert "Peak memory" not in dict(rows)
    assert all("No." not in value for _, value in rows)


def test_views_of_one_image_stand_beside_a_perfect_shuffle() -> None:
    sampling = replace(results.file_sampling(), same_source=SameSource(10, 128, 5.776, 3.528, 5.496))
    rows = dict(topic_rows(Topic.SAMPLING, results.diagnosis(file_sampling=sampling)))
    assert rows["Examples of a batch that share their image"] == "5.78 of 128 (perfect shuffle: 3.53, predicted 5.5)"


def test_data_on_disk_stands_beside_memory() -> None:
    memory = replace(results.memory(), data_bytes=66_010_000)
    assert dict(topic_rows(Topic.MEMORY, results.diagnosis(memory=memory)))["Data on disk"] == "66 MB"


SAMPLING = replace(
    results.file_sampling(),
    mixing=Mixing(2.9, 0.1, 1.0, 0.12, 0.02, 0.2, 0.0, 0.98, 0.99),
    mixing_ideal=Mixing(3.0, 0.1, 1.0, 0.1, 0.01, 0.1, 0.0, 1.0, 1.0),
    same_source=SameSource(10, 128, 5.776, 3.528, 5.496),
    reads_by_epoch=((1, 640), (2, 320)),
)
FULL, BARE = results.diagnosis(file_sampling=SAMPLING), results.bare_diagnosis()
PAGE = Path(__file__).parents[3] / "docs" / "numbers.md"
every_metric = pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.key)


def find_in(document: Any, path: str) -> list[Any]:
    """Return what stands at a path of a document, in each entry of a list on the way."""
    found = [document]
    for name in path.split("."):
        found = [inner for each in found for inner in (each if isinstance(each, list) else [each])]
        found = [each[name] for each in found if isinstance(each, dict)]
    return found


@every_metric
def test_a_number_declares_all_its_parts(metric: Metric) -> None:
    assert metric.title
    assert metric.explanation.endswith(".")
    assert metric.explanation[0].isupper()
    assert metric.better in ("lower", "higher", "")
    assert metric.text is not None or metric.is_compared or metric in headline(), "nobody shows it"
    ending = {Unit.MS: "_ms", Unit.PERCENT: "_percent", Unit.BYTES: "_bytes", Unit.MHZ: "_mhz", Unit.BITS: "_bits"}
    assert metric.key.endswith(ending.get(metric.unit, ""))


@every_metric
def test_a_number_stands_in_the_document_where_it_says(metric: Metric) -> None:
    document = FULL.to_json()
    paths = metric.origin.split(" / ")
    assert all(find_in(document, path) for path in paths), metric.origin
    (found, *others), value = find_in(document, paths[0]), metric.read(FULL)
    if len(paths) == 1 and not others and isinstance(found, int | float):
        assert value in (pytest.approx(found), pytest.approx(100 * found))


@every_metric
def test_a_number_that_was_not_measured_has_a_reason(metric: Metric) -> None:
    assert isinstance(metric.read(BARE), Unavailable)


def test_keys_and_titles_are_distinct() -> None:
    assert len({each.key for each in METRICS}) == len({each.title for each in METRICS}) == len(METRICS)


def test_the_headline_is_made_of_numbers_that_a_run_has() -> None:
    assert [each.key for each in headline()] == list(HEADLINE)
    assert all(isinstance(each.write(FULL), str) and each.over.words(FULL) for each in headline())


def test_the_documentation_lists_every_number(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, table in (("headline", headline_table()), ("metrics", metrics_table())):
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, rest = text.split(start)
        found, after = rest.split(end)
        if request.config.getoption("--update-golden"):
            text = f"{before}{start}{table}{end}{after}"
            PAGE.write_text(text, encoding="utf-8")
        else:
            assert found == table, "run this test with --update-golden"


def headline_table() -> str:
    rows = [f"| {each.title} | {each.explanation} | {each.over} |" for each in headline()]
    return "\n".join(["", "| on the page | what it is | over |", "|---|---|---|", *rows, "", ""])


def metrics_table() -> str:
    rows = [
        f"| {each.title} | {each.unit} | {each.better or '–'} | {each.over} | {each.explanation} | `{each.origin}` |"
        for each in METRICS
    ]
    heading = "| number | unit | better | over | what it is | in the document |"
    return "\n".join(["", heading, "|---|---|---|---|---|---|", *rows, "", ""])


def test_every_cause_of_idle_time_inside_the_windows_is_compared() -> None:
    inside = [cause for cause in GapCause if cause is not GapCause.CAPTURE_GAP]
    assert all(find_metric(f"idle_{cause.value}_ms").is_compared for cause in inside)
