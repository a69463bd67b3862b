import re

from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.ui.text import escape


@given(st.text(alphabet=st.characters(codec="ascii", exclude_categories=["Cc"])))
def test_escaping_only_adds_backslashes(text):
    assert re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", escape(text)) == text


def test_markup_means_nothing():
    assert escape("*a* :red[x] $y$ <b> [l](u) `c` # ~") == (r"\*a\* \:red\[x\] \$y\$ \<b\> \[l\]\(u\) \`c\` \# \~")


def test_a_name_stays_on_its_line():
    assert escape("a\n# b\r") == r"a \# b "
