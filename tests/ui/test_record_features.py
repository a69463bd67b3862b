"""The button that fills the form with what the user's records hold."""

from pathlib import Path

from tests.runs.test_tfrecord import write_records
from tests.support.examples import example, floats, int64s


def test_features_are_read_from_the_files(open_page, tmp_path: Path):
    write_records(tmp_path / "a.tfrecord", [example(label=int64s(1), vector=floats(1, 2))])
    app = open_page("new_run")
    app.segmented_control(key="draft0.kind").set_value("records").run()
    assert "Not ready to launch. Pattern is empty" in "".join(each.value for each in app.error)

    next(each for each in app.text_input if each.label == "Pattern").set_value(str(tmp_path / "none*")).run()
    _button(app).click().run()
    assert any("No file matches" in each.value for each in app.error)

    next(each for each in app.text_input if each.label == "Pattern").set_value(str(tmp_path / "*.tfrecord")).run()
    _button(app).click().run()
    assert next(each for each in app.text_input if each.label == "Features").value == "label:int64, vector:float32[2]"
    assert not app.error
    assert "| vector | float32 | 2 |" in "".join(each.value for each in app.markdown)


def _button(app):
    return next(each for each in app.button if each.label == "Read the features from the files")
