import re
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline_lab.cli.front_page import COMMANDS as COMMANDS_IN_ORDER
from pipeline_lab.cli.front_page import OPTIONS, SUMMARY, summarize, write_front_page
from pipeline_lab.cli.reference import format_reference, list_commands, list_options
from tests.cli.support import call

README = Path(__file__).parents[2] / "README.md"
COMMANDS = dict(list_commands())


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    ended = call(*name.split(), "--help")
    assert ended.exit_code == 0
    assert all(option in ended.stdout for option in list_options(COMMANDS[name]))
    assert COMMANDS[name].help.endswith(".")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_in_the_readme(name: str) -> None:
    readme = README.read_text(encoding="utf-8")
    rows = [line for line in readme.splitlines() if line.startswith((f"| `{name}`", f"| `{name} "))]
    assert rows, f"README.md lacks {name}; `python -m pipeline_lab.cli.reference` prints its table"
    assert all(f"`{option}`" in rows[0] for option in list_options(COMMANDS[name]))


def test_the_short_form_of_help_and_completion_are_there() -> None:
    assert call("run", "-h").stdout == call("run", "--help").stdout
    assert "--install-completion" in call("-h").stdout


def test_the_help_of_all_commands_says_what_typers_own_would(monkeypatch: pytest.MonkeyPatch) -> None:
    def flat(text: str) -> str:
        return " ".join(re.sub("[│╭╮╰╯─]|<bool>", " ", text).split())

    monkeypatch.setenv("COLUMNS", "60")
    own = write_front_page("pipeline-lab")
    assert max(map(len, own.splitlines())) == 60
    typers = flat(call("--help").stdout)
    for text in (SUMMARY, *[text for _, text in OPTIONS], *map(summarize, COMMANDS_IN_ORDER)):
        assert text in flat(own)
        assert text in typers
    assert re.findall(r" (--?[a-z][a-z-]*)", own.split("Commands")[0]) == re.findall(
        r" (--?[a-z][a-z-]*)", typers.split("Commands")[0]
    )
    names = [name.replace("_", "-") for name in COMMANDS_IN_ORDER]
    assert [line.split()[1] for line in own.split("Commands")[1].splitlines()[1:-1] if line[2] != " "] == names


def test_the_reference_has_a_row_per_command() -> None:
    lines = format_reference().splitlines()
    assert len(lines) == 2 + len(COMMANDS)
    assert all(line.count(" | ") == 2 for line in lines if not line.startswith("|-"))


def test_no_arguments_show_the_help() -> None:
    ended = call()
    assert ended.exit_code == 2
    assert "Usage" in ended.stdout + ended.stderr


def test_an_unknown_command_is_wrong_usage() -> None:
    ended = call("dance")
    assert (ended.exit_code, ended.stdout) == (2, "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["fix", "train.py", "--epochs", "2"], "No such option: --epochs. Options of the script come after --"),
        (["tune", "train.py", "--epochs", "2"], "No such option: --epochs. Options of the script come after --"),
        (["fix", "train.py", "--budgt", "60s"], "(Possible options: --budget)"),
        (["run", "--nonsense"], "No such option: --nonsense "),
    ],
)
def test_an_unknown_option_is_told_with_where_those_of_a_script_go(words: list[str], sentence: str) -> None:
    ended = call(*words)
    assert ended.exit_code == 2
    assert sentence in " ".join(ended.stderr.replace("│", " ").split())


def test_the_version_is_told() -> None:
    assert call("--version").stdout.startswith("pipeline-lab ")


@pytest.mark.slow
def test_the_module_is_the_command() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "pipeline_lab", "presets", "--json"], capture_output=True, text=True, check=True
    )
    assert ended.stdout.startswith("[")
    assert ended.stderr == ""


def test_an_interrupt_while_commands_are_loaded_is_no_traceback() -> None:
    program = (
        "import sys; from pipeline_lab.cli import application, main\n"
        "def interrupted(words): raise KeyboardInterrupt\n"
        "application.build_app = interrupted\nmain()"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (130, "")


def test_an_interrupt_of_which_a_compiled_module_makes_another_error_ends_as_one() -> None:
    program = (
        "import signal\nfrom pipeline_lab.cli import application, main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a terminal\n"
        "def interrupted(words):\n    try:\n        signal.raise_signal(signal.SIGINT)\n"
        "    except KeyboardInterrupt:\n        raise ImportError('numpy failed to import') from None\n"
        "application.build_app = interrupted\nmain()"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (130, "")


@pytest.mark.slow
def test_a_closed_pipe_is_no_traceback() -> None:
    command = f"{sys.executable} -m pipeline_lab options | true"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
def test_only_the_command_that_is_asked_for_is_loaded() -> None:
    program = (
        "import contextlib, io, sys; from pipeline_lab.cli import main\n"
        "sys.argv = ['pipeline-lab', 'what-if', '--help']\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()): main()\n"
        "print([name for name in sys.modules if name.startswith('pipeline_lab.cli.commands.')])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "['pipeline_lab.cli.commands.what_if']"
