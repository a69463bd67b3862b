"""The button that fills the form with what the user's records hold."""

from pathlib import Path

from pipeline_lab.ui.serving import access
from tests.runs.data_files.test_tfrecord import write_records
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


def test_files_outside_the_folders_that_may_be_opened_are_not_read(open_page, tmp_path: Path, monkeypatch):
    (allowed := tmp_path / "allowed").mkdir()
    secret = write_records(tmp_path / "secret.tfrecord", [example(label=int64s(1))])
    (allowed / "link.tfrecord").symlink_to(secret)
    monkeypatch.setenv("PIPELINE_LAB_PATHS", str(allowed))
    app = open_page("new_run")
    app.segmented_control(key="draft0.kind").set_value("records").run()
    for pattern, why in (
        (str(tmp_path / "*.tfrecord"), "is outside"),
        (str(allowed / "*.tfrecord"), "is outside"),
        (str(allowed / "*" / ".." / ".." / "*.tfrecord"), "no '..'"),
    ):
        next(each for each in app.text_input if each.label == "Pattern").set_value(pattern).run()
        _button(app).click().run()
        assert any(why in each.value.replace("\\", "") for each in app.error)
        assert not next(each for each in app.text_input if each.label == "Features").value


def test_nothing_is_offered_where_paths_on_the_server_are_off(open_page, monkeypatch):
    monkeypatch.setattr(access, "is_local", lambda: False)
    app = open_page("new_run")
    app.segmented_control(key="draft0.kind").set_value("records").run()
    assert not any(each.label == "Read the features from the files" for each in app.button)


def _button(app):
    return next(each for each in app.button if each.label == "Read the features from the files")


def test_what_a_workload_is_shows_names_of_code_as_code(open_page):
    app = open_page("new_run")
    app.segmented_control(key="draft0.kind").set_value("sparse").run()
    (about,) = [each.value for each in app.caption if "`" in each.value]
    assert "\\`" not in about
