import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline_lab.errors import Unavailable
from pipeline_lab.report.content import Content
from pipeline_lab.report.renderers import markdown
from pipeline_lab.report.renderers.markdown import MAX_CHARACTERS, MarkdownReport, escape_line, write_markdown
from pipeline_lab.report.subjects.run_report import RunReport
from tests.report.subjects import bare_report, comparison_report, hostile_run, run_report
from tests.report.test_html import CONTENT
from tests.support.images import draw_letters

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(autouse=True)
def _no_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markdown, "image_support", lambda: Unavailable("No kaleido here."))


def text_of(subject) -> str:
    (content,) = MarkdownReport().files(subject).values()
    return content.decode()


def test_a_report_is_the_golden_file(compare_golden: Callable[[Path, str], None]) -> None:
    compare_golden(GOLDEN / "report.md", write_markdown(CONTENT, {}))


def test_the_verdict_comes_first() -> None:
    lines = [line for line in text_of(run_report()).splitlines() if line]
    assert lines[0] == "# baseline"
    assert lines[1].startswith("**input bound**")


def test_images_are_linked_where_there_are_any() -> None:
    text = write_markdown(CONTENT, {"memory": "images/memory.png"})
    assert "![Memory over time.](images/memory.png)" in text
    assert "No kaleido here." not in text


def test_without_images_a_sentence_says_what_is_missing() -> None:
    assert text_of(run_report()).rstrip().endswith("_No kaleido here._")


@pytest.mark.slow
def test_images_come_with_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markdown, "image_support", lambda: None)
    monkeypatch.setattr(markdown, "draw_images", draw_letters)
    text, *images = MarkdownReport().files(run_report()).items()
    assert images
    assert all(f"]({path})" in text[1].decode() and content == b"PNG" for path, content in images)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a|b", r"a\|b"),
        ("<script>", r"\<script\>"),
        ("[x](y)", r"\[x\](y)"),
        ("a\nb", "a b"),
        ("`code`", r"\`code\`"),
        ("*_~", r"\*\_\~"),
    ],
)
def test_markup_of_users_is_shown_not_obeyed(text: str, escaped: str) -> None:
    assert escape_line(text) == escaped


@pytest.mark.parametrize("text", ["https://example.org/x", "www.example.org", "me@example.org", "ftp://x.org"])
def test_addresses_of_users_become_no_links(text: str) -> None:
    assert "\u2060" in escape_line(text)


def test_a_hostile_report_keeps_its_tables_and_fences() -> None:
    text = text_of(RunReport(hostile_run()))
    outside = re.sub(r"^(`{3,})\w*\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert not re.search(r"(?<!\\)<(?!/?(details|summary)>)", outside)
    rows = [line for line in outside.splitlines() if line.startswith("|")]
    counts = {len(re.findall(r"(?<!\\)\|", row)) for row in rows}
    assert counts <= {3, 4, 5, 7, 9}


def test_a_fence_is_longer_than_any_inside() -> None:
    run = run_report(notes="```\n</details>\n`````")
    assert "``````text\n```\n</details>\n`````\n``````" in text_of(run)


@pytest.mark.parametrize("subject", [bare_report(), comparison_report(), comparison_report(19)])
def test_a_pull_request_takes_the_text(subject) -> None:
    assert len(text_of(subject)) <= 65_536


def test_what_was_left_out_is_said() -> None:
    long = Content("t", (), CONTENT.answer, ("w" * 1000,) * (MAX_CHARACTERS // 1000), (), CONTENT.sections)
    text = markdown.fit_markdown(long, {})
    assert "```diff" not in text
    assert "leaves out source texts" in text
