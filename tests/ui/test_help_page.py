from pipeline_lab.analysis.metrics.metrics import METRICS, find_metric
from pipeline_lab.ui.shared.glossary import GLOSSARY, define
from tests.ui.conftest import texts


def test_a_word_is_found_by_its_meaning_too(open_page):
    app = open_page("help")
    assert all(word in texts(app) for word in ("Exposed stall", "Race"))
    app.text_input(key="word").set_value("cores").run()
    assert "Hidden contention" in texts(app)
    assert "Salvaged" not in texts(app)
    app.text_input(key="word").set_value("xyzzy").run()
    assert "No term" in app.info[0].value


def test_settings_say_what_is_now_and_how_to_change_it(open_page, monkeypatch):
    monkeypatch.setenv("PIPELINE_LAB_UPLOAD_LIMIT_MB", "7")
    monkeypatch.setenv("PIPELINE_LAB_ALLOW_CODE", "1")
    written = texts(open_page("help"))
    assert "7 MB" in written.replace("\u00a0", " ")
    assert "| allowed |" in written
    assert "PIPELINE\\_LAB\\_STORE" in written or "PIPELINE_LAB_STORE" in written


def test_every_meaning_is_a_sentence():
    assert all(text.endswith(".") and not text[0].islower() for text in GLOSSARY.values())


def test_a_number_is_explained_by_the_word_that_its_name_holds():
    assert define("input wait, recorded steps") == find_metric("wait_percent").explanation
    assert define("exposed stall of a host") == GLOSSARY["Exposed stall"]
    assert define("mean step") == find_metric("mean_step_ms").explanation
    assert define("thread pool") == GLOSSARY["Thread pool"]
    assert define("marker") is None


def test_every_number_that_is_shown_by_itself_is_explained():
    assert all(each.explanation == define(each.title) for each in METRICS)


def test_help_begins_with_an_example_and_leads_to_the_documentation(open_page, samples):  # noqa: ARG001
    app = open_page("help", **{"help-tab": "Documentation"})
    assert app.button(key="open-example").label == "Open an example"
    assert "pipeline-lab watch train.py" in texts(app)
    assert app.selectbox(key="page").value == "index"
    assert "](/help?help-tab=Documentation&page=tutorial)" in texts(app)
    app.selectbox(key="page").set_value("read-a-stall").run()
    assert not app.exception
    assert "](images/" not in texts(app)
