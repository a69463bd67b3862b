import hashlib
import re
from base64 import b64decode
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import plotly.offline
import pytest

from pipeline_lab.analysis.verdict.verdict import Evidence, Suggestion
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.job_charts import memory_over_time
from pipeline_lab.report.content import Answer, AuthorNote, CodeBlock, Content, Picture, Section, Subject, Table, Text
from pipeline_lab.report.renderers.html import HtmlReport, write_page
from pipeline_lab.report.subjects.run_report import RunReport
from tests.report.subjects import (
    bare_report,
    comparison_report,
    hostile_report,
    hostile_run,
    many_report,
    rendered,
    run_report,
)
from tests.support import results

GOLDEN = Path(__file__).parent / "golden"
LIMIT_BYTES = 5_000_000

CONTENT = Content(
    title="baseline",
    about=(("Run", "20260101-baseline"),),
    answer=Answer(
        "input bound",
        "bad",
        ("The device waits.", "For input."),
        "confidence: high",
        (Evidence("Input wait", "60 %"),),
        (Suggestion("Add prefetch", "Nothing overlaps.", 30.0), Suggestion("Map in parallel", "One core works.")),
    ),
    warnings=("Recorded apart.",),
    notes=(AuthorNote("Notes", "First line\n<b>second</b>"),),
    sections=(
        Section(
            "Memory",
            (
                Picture(
                    "memory",
                    "Memory over time.",
                    lambda mode: memory_over_time(results.memory(), Unavailable(""), mode),
                ),
                Picture("absent", "Nothing.", lambda _: Unavailable("It was not measured.")),
                Table("Memory", ("What", "Size"), (("peak", "940 MB"),), numeric=(1,), note="1 of 2."),
                Text("A sentence."),
                Text("Not recorded.", missing=True),
                CodeBlock("Diff", "+a\n-b\n c", "diff"),
                Table("Options", ("Name", "Value"), (("a", "1"),), folded=True),
            ),
        ),
    ),
)


class Page(HTMLParser):
    """The texts, the elements and the scripts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        if tag not in ("meta", "br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script" and self.elements[-1][1].get("type") != "application/json":
            self.scripts.append(data)


def page_of(make: Callable[[], Subject]) -> str:
    return rendered("html", make).decode()


def skeleton(page: str) -> str:
    """Return a page without style, scripts, data and version."""
    short = re.sub(r"(<style>|<script[^>]*>).+?(</style>|</script>)", r"\1…\2", page, flags=re.DOTALL)
    short = re.sub(r"'sha256-[^']*'|&#39;sha256-.*?&#39;", "'sha256-…'", short)
    return re.sub(r"Pipeline Lab \d[^\s<\"]*", "Pipeline Lab …", short)


def test_the_skeleton_is_the_golden_file(compare_golden: Callable[[Path, str], None]) -> None:
    compare_golden(GOLDEN / "skeleton.html.txt", skeleton(write_page(CONTENT)))


@pytest.mark.parametrize("make", [run_report, bare_report, comparison_report, many_report])
@pytest.mark.slow
def test_a_report_is_one_well_formed_file_of_at_most_5_mb(make: Callable[[], Subject]) -> None:
    text = page_of(make)
    page = Page(text)
    assert page.open == []
    assert len(text.encode()) <= LIMIT_BYTES
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


@pytest.mark.slow
def test_a_run_of_100_000_steps_is_bounded_and_its_charts_say_so() -> None:
    long = results.diagnosis(
        job_steps=results.job_steps(100_000),
        steps=results.steps(100_000),
        input_stalls=results.input_stalls(100_000),
        idle_gaps=results.idle_gaps(100_000),
        file_sampling=results.file_sampling(1000, 60),
        memory=results.memory(50_000),
        profiler_cost=results.profiler_cost(100_000),
    )
    text = HtmlReport().render(run_report(diagnosis=long)).decode()
    assert len(text.encode()) <= LIMIT_BYTES
    assert "neighboring steps" in text
    assert "of 20,000 waits; the CSV and Parquet exports hold all of them." in text


@pytest.mark.slow
def test_the_verdict_comes_before_everything_else() -> None:
    text = page_of(run_report)
    places = [
        text.index(f">{part}<")
        for part in ("input bound", "Input wait", "What to try", "Numbers", "Input stalls", "What ran")
    ]
    assert places == sorted(places)


@pytest.mark.slow
def test_the_page_loads_nothing_and_its_policy_allows_only_its_own_scripts() -> None:
    page = Page(page_of(run_report))
    for tag, attributes in page.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form", "a")
        assert not {"src", "href", "action", "srcset"} & set(attributes)
        assert not any(name.startswith("on") for name in attributes)
    (policy,) = (a["content"] for tag, a in page.elements if tag == "meta" and a.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    assert {b64decode(each) for each in allowed} == {hashlib.sha256(text.encode()).digest() for text in page.scripts}
    assert "unsafe-inline" not in policy.split(";")[1]


@pytest.mark.parametrize("long", [1, 100])
@pytest.mark.slow
def test_hostile_names_and_notes_add_no_element_and_no_script(long: int) -> None:
    page, calm = (
        Page(HtmlReport().render(RunReport(hostile_run(long))).decode() if long > 1 else page_of(hostile_report)),
        Page(page_of(run_report)),
    )
    assert page.open == []
    assert page.scripts == calm.scripts
    assert {tag for tag, _ in page.elements} <= {tag for tag, _ in calm.elements}
    assert not any("onerror" in attributes for _, attributes in page.elements)


@pytest.mark.slow
def test_hostile_direction_marks_are_spelt_out_and_letters_are_kept() -> None:
    text = page_of(hostile_report)
    assert "\u202e" not in text
    assert "⟨U+202E⟩" in text
    assert "שלום مرحبا" in text


@pytest.mark.slow
def test_long_notes_are_shown_whole_and_long_names_cut() -> None:
    run = replace(run_report().run, name="n" * 10_000, notes="w" * 10_000)
    text = HtmlReport().render(RunReport(run)).decode()
    assert "w" * 10_000 in text
    assert "n" * 1000 not in text


@pytest.mark.slow
def test_the_source_is_the_one_that_ran() -> None:
    assert "def make_dataset(files" in page_of(run_report)


@pytest.mark.slow
def test_equal_reports_are_equal_bytes() -> None:
    assert HtmlReport().render(run_report()) == rendered("html", run_report)


def test_the_vendored_plotly_is_the_one_that_plotly_py_speaks_to() -> None:
    """After an upgrade of plotly: `npm pack plotly.js-cartesian-dist-min@<version>`, then copy script and license."""
    folder = Path(__file__).parents[2] / "pipeline_lab" / "report" / "vendor"
    header = (folder / "plotly-cartesian.min.js").read_text()[:200]
    assert f"plotly.js (cartesian - minified) v{plotly.offline.get_plotlyjs_version()}" in header
    assert (folder / "plotly-cartesian.LICENSE").read_text().startswith("MIT License")
    assert b"\r" not in (folder / "plotly-cartesian.min.js").read_bytes()
