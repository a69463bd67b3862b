import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from pipeline_lab.analysis.verdict.verdict import Suggestion
from pipeline_lab.comparison.recorded_runs import compare_runs
from pipeline_lab.report.renderers.notebook import describe
from pipeline_lab.units import NO_BREAK_SPACE
from tests.report.subjects import HOSTILE, hostile_run
from tests.support import results
from tests.support.recorded import recorded

COMPARISON = compare_runs(recorded(), recorded("optimised", 0.6))


def test_a_diagnosis_shows_its_verdict_and_its_numbers() -> None:
    shown = results.diagnosis()._repr_mimebundle_(include=None, exclude=None)
    assert set(shown) == {"text/plain", "text/markdown", "text/html"}
    for text in shown.values():
        assert "The device waits for input 60 % of the time" in text.replace(NO_BREAK_SPACE, " ")
    assert "Median step" in shown["text/html"]
    assert "ParallelMapV2" in shown["text/html"], "the stages"


def test_a_printed_diagnosis_fits_on_a_screen() -> None:
    lines = str(results.diagnosis()).splitlines()
    assert len(lines) <= 30
    assert lines[0].startswith("The device waits for input 60 % of the time")
    assert [line.split()[0] for line in lines if "ParallelMapV2" in line or "TFRecord" in line] == [
        "ParallelMapV2",
        "TFRecord",
    ]
    assert lines[-1] == "! Files are not sampled by size."
    assert len(str(COMPARISON).splitlines()) <= 30


def test_the_step_is_drawn_to_scale_in_every_short_form() -> None:
    found, cure = results.diagnosis(), Suggestion("Add a cache.", "", 30.0, options={"name": "a"})
    advised = replace(found, verdict=replace(found.verdict, suggestions=(cure,)))
    lines = str(advised).splitlines()
    strip = next(line for line in lines if line.startswith("█"))
    assert len(strip.split()[0]) == 64
    assert strip.count("█") == round(0.6 * 64), "60 % of the step is waiting"
    after = lines[lines.index(strip) + 1]
    assert after.startswith("▔" * 45 + " ")
    assert "predicted" in after
    assert "█ input wait" in lines[lines.index(strip) + 2]
    html = advised._repr_mimebundle_(include=None, exclude=None)["text/html"]
    assert "flex:0 0 60.00%" in html


def test_what_to_try_first_is_printed_as_one_sentence() -> None:
    found, cure = results.diagnosis(), Suggestion("Add a cache.", "Files are read again and again.", 30.0)
    advised = replace(found, verdict=replace(found.verdict, suggestions=(cure,)))
    assert f"Try first: Add a cache ({cure.prediction})." in str(advised).splitlines()


def test_a_comparison_shows_its_answer_and_the_warning() -> None:
    html = COMPARISON._repr_html_().replace(NO_BREAK_SPACE, " ")
    assert "optimised took 40 % less time per step than baseline" in html
    assert "recorded separately" in html


def test_a_notebook_gets_no_script_and_little_weight() -> None:
    html = COMPARISON._repr_html_()
    assert "<script" not in html
    assert len(html) < 30_000


def test_hostile_names_stay_text() -> None:
    html = compare_runs(recorded(name=HOSTILE), hostile_run())._repr_html_()
    tags: set[str] = set()

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
            tags.add(tag)

    Tags().feed(html)
    assert tags <= {
        "div",
        "p",
        "strong",
        "em",
        "small",
        "bdi",
        "ul",
        "li",
        "details",
        "summary",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }


def test_what_has_no_report_is_refused() -> None:
    with pytest.raises(TypeError, match="no report of a int"):
        describe(7)


@pytest.mark.slow
def test_results_load_no_drawing_before_they_are_shown() -> None:
    code = "import sys, pipeline_lab.comparison.recorded_runs; sys.exit('plotly' in sys.modules or 'jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_device_that_never_idled_has_a_page_too() -> None:
    gaps = results.idle_gaps()
    busy = replace(gaps, gaps=gaps.gaps.slice(0, 0))
    assert describe(results.diagnosis(idle_gaps=busy))["text/html"]
