import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.report.plain_text import plain, plain_line, slug

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\r\nb\rc\n", "a\nb\nc\n"),
        ("tab\there", "tab\there"),
        ("\u202egnp.exe", "⟨U+202E⟩gnp.exe"),
        ("nul\x00", "nul⟨U+0000⟩"),
        ("\ud800", "⟨U+D800⟩"),
        ("שלום", "שלום"),
    ],
)
def test_what_cannot_be_seen_is_spelt_out(text: str, shown: str) -> None:
    assert plain(text) == shown


@given(ANY_TEXT)
def test_plain_text_can_always_be_written_and_is_plain_already(text: str) -> None:
    once = plain(text)
    once.encode("utf-8")
    assert plain(once) == once


@given(ANY_TEXT, st.integers(8, 60))
def test_a_line_has_no_breaks_and_keeps_to_its_length(text: str, longest: int) -> None:
    line = plain_line(text, longest)
    assert "\n" not in line
    assert len(line) <= longest


def test_a_long_line_keeps_both_ends() -> None:
    assert plain_line("begin" + "x" * 1000 + "end", 20) == "beginxxxxxxx…xxxxend"


@given(ANY_TEXT)
def test_a_slug_is_a_file_name(text: str) -> None:
    assert all(letter in "abcdefghijklmnopqrstuvwxyz0123456789-" for letter in slug(text))
    assert 1 <= len(slug(text)) <= 60
