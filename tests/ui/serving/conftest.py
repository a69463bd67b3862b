"""Requests that no server received come from the app's own account."""

import os

import pytest

from pipeline_lab.ui.serving import visitors


@pytest.fixture(autouse=True)
def _own_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visitors, "account_of_peer", lambda *_: os.getuid())
