import json
from dataclasses import replace

import pytest

from pipeline_lab.runs.launch.launcher import wait
from pipeline_lab.runs.run_folder import update_record
from tests.cli.support import call
from tests.support.lab import Lab

HOSTILE = "\x1b[2J\u202eevil"


@pytest.mark.parametrize("command", ["list", "show"])
def test_control_characters_of_names_do_not_reach_the_terminal(lab: Lab, command: str) -> None:
    folder = lab.launch("done")
    wait(folder)
    update_record(folder, lambda record: replace(record, name=HOSTILE, tags=("\x1b[2J",)))
    arguments = (folder.id,) if command == "show" else ()
    printed = call("runs", command, *arguments, "--store", lab.store.root).stdout
    assert "⟨U+001B⟩" in printed
    assert not {"\x1b", "\u202e"} & set(printed)
    document = call("runs", command, *arguments, "--json", "--store", lab.store.root).stdout
    assert not {"\x1b", "\u202e"} & set(document)
    read = json.loads(document)
    assert (read if command == "show" else read[0])["name"] == HOSTILE
