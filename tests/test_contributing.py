"""CONTRIBUTING.md holds: its toy examples are added to a copy of the package by exactly its steps, and appear."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "pipeline_lab"
GUIDE = ROOT / "CONTRIBUTING.md"
SHOWN = Path(__file__).with_name("contributing")
"""For each kind a script that asserts where its toy appears; it runs on the changed copy, in one process with the others."""
KINDS = sorted(path.stem for path in SHOWN.glob("[a-z]*.py"))


@dataclass(frozen=True)
class Block:
    """A piece of code of the guide: the file, where in it (empty for a new file), and the lines."""

    path: str
    place: str
    text: str


def blocks_of(kind: str) -> Iterator[Block]:
    """Yield the code of the guide's section about a kind, in its order."""
    guide = GUIDE.read_text(encoding="utf-8")
    section = re.search(rf"^### {kind.replace('_', ' ').capitalize()}$(.*?)(?=^##)", guide + "\n## ", re.M | re.S)
    assert section, f"CONTRIBUTING.md has no section about {kind}"
    for text in re.findall(r"^```(?:python|toml)\n(.*?)^```", section[1], re.M | re.S):
        first, _, rest = text.partition("\n")
        path, _, place = first.removeprefix("# ").partition(", ")
        yield Block(path, place, rest)


def add(block: Block, root: Path) -> None:
    """Do what a block says: write a new file, or insert its lines where its first line names."""
    path = root / block.path
    if not block.place:
        assert not path.exists(), f"{block.path} is there already"
        path.write_text(block.text, encoding="utf-8")
        return
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    if block.place == "at the end":
        above = len(lines)
    elif block.place == "among the imports":
        body = ast.parse("".join(lines)).body
        above = max((node.end_lineno or 1) - 1 for node in body if isinstance(node, ast.Import | ast.ImportFrom))
    else:
        name = block.place.removeprefix("in ")
        above = next(n for n, line in enumerate(lines) if re.match(rf"{name}\b", line))
        while not lines[above].rstrip().endswith(("(", "[", "{", ":")):
            above += 1
    lines.insert(above + 1, block.text)
    path.write_text("".join(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the package and add every toy of the guide."""
    root = tmp_path_factory.mktemp("grown")
    leave_out = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "pipeline_lab", root / "pipeline_lab", ignore=leave_out)
    shutil.copytree(ROOT / "profiles" / "samples", root / "profiles" / "samples", ignore=leave_out)
    for kind in KINDS:
        for block in blocks_of(kind):
            add(block, root)
    return root


RUN_ALL = """
import json, sys, traceback
from pathlib import Path

failures = {}
for path in map(Path, sys.argv[1:]):
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), {"__name__": "__main__"})
    except BaseException:
        failures[path.stem] = traceback.format_exc()
print()
print(json.dumps(failures))
"""


@pytest.fixture(scope="module")
def failures(grown: Path) -> dict[str, str]:
    """Run what shows the toys, in one process, for to import all of the package takes longer; return what failed, by kind."""
    own = {**os.environ, "PYTHONPATH": str(grown), "PIPELINE_LAB_STORE": str(grown / "profiles")}
    command = [sys.executable, "-c", RUN_ALL, *(str(SHOWN / f"{kind}.py") for kind in KINDS)]
    ended = subprocess.run(command, cwd=grown, env=own, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found: dict[str, str] = json.loads(ended.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_added_by_the_guide_appears(kind: str, failures: dict[str, str]) -> None:
    assert failures.get(kind, "") == ""


def names_in(path: Path) -> Iterator[str]:
    """Yield what can be imported from a module or a folder of modules."""
    if path.is_dir():
        yield from (each.stem for each in path.iterdir())
        path /= "__init__.py"
    elif not path.exists():
        path = path.with_suffix(".py")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def test_what_the_examples_import_exists(grown: Path) -> None:
    """The half of a workload that loads TensorFlow is not run here."""
    blocks = [block for kind in KINDS for block in blocks_of(kind) if not block.place]
    assert blocks
    for block in blocks:
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pipeline_lab."):
                there = set(names_in(grown.joinpath(*(node.module or "").split("."))))
                assert {each.name for each in node.names} <= there, f"{block.path} imports from {node.module}"


def test_every_file_that_the_guide_names_exists() -> None:
    prose = re.sub(r"^```.*?^```", "", GUIDE.read_text(encoding="utf-8"), flags=re.M | re.S)
    named = set(re.findall(r"`([a-z_/]+\.(?:py|toml|md))`", prose))
    assert len(named) > 50
    known = {path.name for room in ("pipeline_lab", "tests") for path in (ROOT / room).rglob("*.*")}
    assert {
        name for name in named if not ((ROOT / name).exists() or (PACKAGE / name).exists() or name in known)
    } == set()
