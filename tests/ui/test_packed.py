import base64
import contextlib
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.presets import PRESETS
from pipeline_lab.ui.new_run.origin import MAX_BYTES, pack, unpack

DOCUMENTS = st.dictionaries(st.text(), st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))


@given(DOCUMENTS)
def test_what_is_packed_comes_back_and_fits_a_link(document):
    word = pack(document)
    assert unpack(word) == document
    assert set(word) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


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
