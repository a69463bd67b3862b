"""Numbers side by side."""

from tests.ui.conftest import run_function


def _names_out_of_a_trace() -> None:
    from pipeline_lab.ui.shared import contents

    contents.show_numbers("evidence", [("functions", "__train__ [here](//elsewhere)")])


def test_what_a_trace_names_means_nothing_in_markdown():
    app = run_function(_names_out_of_a_trace)
    assert not app.exception
    assert app.metric[0].value == r"\_\_train\_\_ \[here\]\(//elsewhere\)"
