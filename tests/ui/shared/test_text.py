import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.ui.shared.text import escape, prose, sentence
from pipeline_lab.units import keep_together


@pytest.mark.slow
@given(st.text(alphabet=st.characters(codec="ascii", exclude_categories=["Cc"])))
def test_escaping_only_adds_backslashes(text):
    assert re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", escape(text)) == keep_together(text)


def test_markup_means_nothing():
    assert escape("*a* :red[x] $y$ <b> [l](u) `c` # ~") == (r"\*a\* \:red\[x\] \$y\$ \<b\> \[l\]\(u\) \`c\` \# \~")


def test_a_name_stays_on_its_line():
    assert escape("a\n# b\r") == r"a \# b "


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pipeline: a batch stage is missing.", "Pipeline: a batch stage is missing."),
        ("run.json is damaged.", "run.json is damaged."),
        ("'x' is no preset.", "'x' is no preset."),
    ],
)
def test_a_sentence_begins_with_a_capital_unless_it_begins_with_a_name(text, shown):
    assert sentence(text) == shown


def test_code_in_a_sentence_is_shown_as_code_and_nothing_else_is_markup():
    assert prose("set `sample_probe` on, *now*") == r"set `sample_probe` on, \*now\*"
    assert prose("a lone ` and $x$") == r"a lone \` and \$x\$"


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_code_does_not_go_on_behind_its_line(end):
    """Between blank lines Markdown would read what stands inside the backticks as a paragraph of its own."""
    shown = prose(f"`a{end}{end}[link](//elsewhere){end}{end}b`")
    assert "\n" not in shown
    assert "\r" not in shown


def test_a_number_stays_with_its_unit_but_code_keeps_its_spaces():
    assert prose("266 ms, `x % 3 s`") == "266\u00a0ms, `x % 3 s`"
