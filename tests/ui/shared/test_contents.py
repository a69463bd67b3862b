"""Parts of a report as Streamlit's Markdown."""

from pipeline_lab.report.content import Table
from pipeline_lab.ui.run.header import as_typed
from pipeline_lab.ui.shared.contents import write_table
from tests.ui.conftest import run_function


def test_a_table_keeps_quantities_in_one_piece_on_the_right():
    table = Table("Arms", ("Arm", "Step"), (("the first", "19.9 ms"),), numeric=(1,))
    assert write_table(table).split("\n") == ["| Arm | Step |", "|:---|---:|", "| the first | 19\\.9\u00a0ms |"]


def test_a_cell_can_neither_end_its_row_nor_mean_anything():
    table = Table("Names", ("Name",), (("a|b\n:red[x] <img> $y$",),))
    assert write_table(table).split("\n")[2] == r"| a\|b \:red\[x\] \<img\> \$y\$ |"


def test_long_cells_are_cut():
    assert len(write_table(Table("Names", ("Name",), (("x" * 10_000,),)))) < 300


def test_notes_keep_their_lines():
    assert as_typed("one\r\n*two*\u202e\n") == "one  \n\\*two\\*⟨U\\+202E⟩"


def _names_out_of_a_trace() -> None:
    from pipeline_lab.ui.shared import contents

    contents.show_numbers("evidence", [("functions", "__train__ [here](//elsewhere)")])


def test_what_a_trace_names_means_nothing_in_markdown():
    app = run_function(_names_out_of_a_trace)
    assert not app.exception
    assert app.metric[0].value == r"\_\_train\_\_ \[here\]\(//elsewhere\)"
