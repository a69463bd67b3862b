import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pipeline_lab
from pipeline_lab.cli.reference import list_commands, list_options
from pipeline_lab.options.presets import PRESETS, find_preset
from pipeline_lab.options.run_options import set_options
from tests.cli.support import call
from tests.support.results import diagnosis

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
TEXTS = [ROOT / "README.md", *PAGES, *sorted((ROOT / "examples").glob("*.py"))]
COMMANDS = dict(list_commands())


def code_lines(text: str) -> Iterator[str]:
    """Yield each line of shell code, each piece of code inside a sentence, and each command that heads an example."""
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield from block.splitlines()
    yield from re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    yield from re.findall(r"^pipeline-lab .*$", text, re.MULTILINE)


def calls(path: Path) -> list[list[str]]:
    """Return the arguments of every call of ``pipeline-lab`` in a text."""
    found = []
    for line in code_lines(path.read_text(encoding="utf-8")):
        if re.match(r"(\.venv/bin/)?pipeline-lab ", line):
            words = shlex.split(line, comments=True)[1:]
            cut = next((place for place, word in enumerate(words) if word in "|>"), len(words))
            found.append(words[:cut])
    return found


CALLS = [(path.name, words) for path in TEXTS for words in calls(path) if words[0] != "COMMAND"]


def command_of(words: list[str]) -> str:
    return " ".join(words[:2]) if " ".join(words[:2]) in COMMANDS else words[0]


def own_words(words: list[str]) -> list[str]:
    """Leave out what belongs to a script that is watched."""
    end = next((place for place, word in enumerate(words) if word == "-m" or word.endswith(".py")), len(words))
    return words[: end + 1] if words[0] == "watch" else words


@pytest.mark.parametrize(
    ("page", "words"), CALLS, ids=lambda value: value if isinstance(value, str) else " ".join(value)
)
def test_every_command_of_the_documentation_exists(page: str, words: list[str]) -> None:
    command = command_of(words)
    assert command in COMMANDS, f"{page}: there is no command {command}"
    options = [word.split("=")[0] for word in own_words(words) if word.startswith("--")]
    unknown = set(options) - set(list_options(COMMANDS[command])) - {"--help"}
    assert not unknown, f"{page}: {command} has no {unknown}"


@pytest.mark.parametrize(
    "words", [words for _, words in CALLS if "--preset" in words and "--workload" not in words], ids=" ".join
)
def test_every_preset_and_setting_of_the_documentation_is_valid(words: list[str]) -> None:
    settings = [words[place + 1].split("=", 1) for place, word in enumerate(words) if word == "--set"]
    set_options(find_preset(words[words.index("--preset") + 1]).options, [(path, text) for path, text in settings])


def test_samples_and_files_that_the_documentation_names_exist() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in TEXTS)
    for sample in set(re.findall(r"\bsample-[a-z]+\b", text)) - {"sample-host"}:
        assert (ROOT / "profiles" / "samples" / sample).is_dir(), sample
    for example in set(re.findall(r"\bexamples/[\w-]+\.\w+", text)):
        assert (ROOT / example).is_file(), example


def test_every_picture_is_there_and_shown_and_all_are_small() -> None:
    shown = {
        name
        for path in TEXTS
        for name in re.findall(r"\bimages/([\w-]+\.(?:webp|svg))", path.read_text(encoding="utf-8"))
    }
    pictures = list((ROOT / "docs" / "images").iterdir())
    assert shown == {picture.name for picture in pictures}, "`make screenshots` takes them"
    assert sum(picture.stat().st_size for picture in pictures) < 1_500_000


def test_the_image_copies_only_what_is_there() -> None:
    lines = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    assert [name for line in lines for name in line.split() if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text(encoding="utf-8"))
    for target, anchor in links:
        linked = page.parent / target if target else page
        assert linked.exists(), f"{page.name} links to {target}, which does not exist"
        assert not anchor or anchor in anchors(linked), f"{page.name}: {target} has no heading #{anchor}"


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_page_is_in_the_table_of_contents() -> None:
    listed = re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == [page.name for page in PAGES]


@pytest.mark.slow
def test_the_site_builds_and_the_python_interface_is_described(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    page = (tmp_path / "api" / "index.html").read_text(encoding="utf-8")
    names = [*(f"pipeline_lab.{name}" for name in pipeline_lab.__all__), "pipeline_lab.capture.ProfileWindows"]
    assert [name for name in names if f'id="{name}"' not in page] == []
    assert re.findall(r":[a-z]+:<code>", page) == []  # roles are another dialect


def test_every_preset_is_run_in_the_questions_from_the_field() -> None:
    named = {word for page, words in CALLS if page == "faq.md" for word in words}
    assert {preset.name for preset in PRESETS} <= named


@pytest.mark.slow
def test_output_that_pages_quote_is_what_the_commands_print(tmp_path: Path) -> None:
    samples = ("sample-baseline", "sample-optimised")
    commands = [("analyze", samples[0]), ("analyze", samples[1]), ("compare", *samples, "--fail-if-slower", "5%")]
    ended = [call(*command, "--store", tmp_path) for command in commands]
    printed = " ".join(" ".join(one.stdout + one.stderr for one in ended).split())
    for path in TEXTS:
        for block in re.findall(r"^```text\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            for line in block.splitlines():
                is_ours = line.startswith(("$", "…"))
                assert is_ours or " ".join(line.split()) in printed, f"{path.name} quotes {line!r}"


def test_every_key_of_the_json_document_is_defined() -> None:
    text = (ROOT / "docs" / "numbers.md").read_text(encoding="utf-8")
    assert sorted(key for key in keys_of(diagnosis().to_json()) if f"`{key}`" not in text) == []


def keys_of(value: object) -> set[str]:
    if isinstance(value, dict):
        return {str(key) for key in value}.union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()
