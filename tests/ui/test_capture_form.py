"""Record a running job from the app."""

from pipeline_lab.runs import recordings
from pipeline_lab.runs.launch import runtime
from pipeline_lab.ui.serving import access
from pipeline_lab.ui.shared import analyses
from tests.support import results
from tests.ui.conftest import texts


def _ask(app, address, windows=3):
    app.text_input(key="capture-address").set_value(address)
    app.number_input(key="capture-windows").set_value(windows)
    app.button(key="capture-start").click()
    return app.run()


def test_a_capture_is_started_and_its_page_opens(open_page, run_store, monkeypatch):
    commands = []
    monkeypatch.setattr(runtime, "start_detached", lambda command, _log: commands.append(command))
    app = _ask(open_page("upload"), "trainer:6009")
    assert not app.exception
    (record,) = run_store.runs()
    assert (record.name, record.status.state.is_live) == ("capture trainer:6009", True)
    assert commands[0][-2:] == [str(run_store.folder(record.id).path), "trainer:6009"]
    assert commands[0][commands[0].index("--windows") + 1] == "3"
    assert app.title[0].value.replace("\\", "") == "capture trainer:6009"
    assert "steps are not timed one by one" in texts(app)


def test_what_is_no_address_is_said_in_place(open_page, run_store):
    app = _ask(open_page("upload"), "nowhere")
    assert "write HOST:PORT" in app.error[0].value.replace("\\", "")
    assert run_store.runs() == []


def test_it_is_not_offered_to_other_machines(open_page, monkeypatch):
    monkeypatch.setattr(access, "is_local", lambda: False)
    app = open_page("upload")
    assert not [one for one in app.button if one.key == "capture-start"]


def test_a_run_without_a_step_table_shows_its_verdict_while_it_goes_on(open_page, run_store, monkeypatch):
    found = results.diagnosis()
    monkeypatch.setattr(analyses, "saved", lambda _: found)
    folder = recordings.begin(run_store, "watched", tags=())
    window = folder.window("window-0001")
    window.mkdir(parents=True)
    (window / "host.xplane.pb").write_bytes(b"")
    app = open_page("run", run=folder.id)
    assert not app.exception
    assert "This is what its profile windows say so far" in texts(app)
    assert found.verdict.sentence in app.header[0].value.replace("\\", "")
