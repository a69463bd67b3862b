"""Where a draft comes from: options in a link, presets that were kept, JSON files."""

import base64
import contextlib
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.presets import PRESETS
from pipeline_lab.options.run_options import read_options
from pipeline_lab.runs.saved_presets import saved_presets
from pipeline_lab.ui.new_run.origin import MAX_BYTES, pack, unpack
from tests.support.presets import BASELINE, OPTIMISED
from tests.ui.conftest import texts

VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=20)
DOCUMENTS = st.dictionaries(st.text(max_size=20), st.recursive(VALUES, st.lists, max_leaves=6), max_size=6)


@given(DOCUMENTS)
@pytest.mark.slow
def test_what_is_packed_comes_back_and_fits_a_link(document):
    word = pack(document)
    assert unpack(word) == document
    assert set(word) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


@pytest.mark.slow
@given(st.text() | st.binary().map(lambda data: base64.urlsafe_b64encode(data).decode()))
def test_anything_else_is_one_sentence(word):
    with contextlib.suppress(OptionsError):
        assert isinstance(unpack(word), dict)


def test_a_link_that_unfolds_to_a_flood_is_refused():
    flood = base64.urlsafe_b64encode(zlib.compress(b'{"a":"' + b"a" * 50 * MAX_BYTES + b'"}')).decode()
    with pytest.raises(OptionsError):
        unpack(flood)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_every_preset_fits_into_a_link(preset):
    assert len(pack(preset.options.model_dump(mode="json"))) < 2000


def name_of(app):
    return next(field for field in app.text_input if field.label == "Name")


def test_the_link_carries_what_was_changed_and_brings_it_back(open_page):
    app = open_page("new_run", **{"from": "preset:optimised"})
    assert "options" not in app.query_params
    name_of(app).set_value("mine").run()
    word = app.query_params["options"]
    assert unpack(word)["name"] == "mine"
    other = open_page("new_run", options=word)
    assert not other.exception
    assert name_of(other).value == "mine"
    # going back in the browser brings the earlier link
    other.query_params["options"] = pack(BASELINE.options.model_dump(mode="json"))
    assert name_of(other.run()).value == "baseline"


def test_another_preset_clears_the_link(open_page):
    app = open_page("new_run", options=pack(OPTIMISED.options.model_dump(mode="json") | {"name": "mine"}))
    app.selectbox[0].set_value("baseline").run()
    assert name_of(app).value == "baseline"
    assert "options" not in app.query_params
    assert app.query_params["from"] == "preset:baseline"


def test_a_damaged_link_is_one_sentence(open_page):
    app = open_page("new_run", options="x")
    assert not app.exception
    assert "copy the whole link again" in texts(app)


def test_a_preset_of_ones_own_is_kept_offered_and_forgotten(open_page, run_store):
    app = open_page("new_run", **{"from": "preset:optimised"})
    app.text_input(key="preset-name").set_value("my-images")
    app.button(key="save-preset").click().run()
    assert not app.exception
    assert [preset.name for preset in saved_presets(run_store)] == ["my-images"]
    assert app.selectbox[0].value == "my-images"
    app.button(key="forget-preset").click().run()
    assert saved_presets(run_store) == []


def test_a_name_that_cannot_be_kept_says_why(open_page):
    app = open_page("new_run")
    app.text_input(key="preset-name").set_value("No Good")
    app.button(key="save-preset").click().run()
    assert "lowercase letters" in texts(app)


def test_options_come_from_a_file(open_page):
    app = open_page("new_run")
    mine = OPTIMISED.options.model_copy(update={"name": "from a file"})
    app.file_uploader(key="options-file").upload("mine.json", mine.to_json().encode(), "application/json").run()
    assert not app.exception
    assert name_of(app).value == "from a file"
    assert read_options(unpack(app.query_params["options"])) == mine
    app = open_page("new_run")
    app.file_uploader(key="options-file").upload("bad.json", b'{"pipeline": 3}', "application/json").run()
    assert "contains no usable options" in texts(app)


def test_code_comes_by_no_link_and_no_file(open_page, monkeypatch):
    monkeypatch.setenv("PIPELINE_LAB_ALLOW_CODE", "1")
    app = open_page("new_run", options=pack({"workload": {"kind": "module", "target": "evil:make"}}))
    assert not app.exception
    assert "Code cannot come from a link" in texts(app)
