"""The rooms of the package: who may know whom, by import (the import contracts say it) and by name."""

import ast
import re
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from pipeline_lab.hooks import Program, module_of

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "pipeline_lab"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
ROOMS: list[str] = next(each["layers"] for each in CONTRACTS if each["type"] == "layers")
"""The rooms from the top down."""
NAME = re.compile(r"\bpipeline_lab[./](\w+)")


def texts(path: Path) -> Iterator[str]:
    """Yield every text in a module that is no docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in statements:
            yield node.value


def test_the_contract_knows_every_room() -> None:
    entries = {path.name.removesuffix(".py") for path in PACKAGE.iterdir() if not path.name.startswith(("_", "."))}
    assert entries - {"py.typed", "samples"} == set(ROOMS)


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_no_room_names_a_module_of_a_room_above_it(room: str) -> None:
    above = set(ROOMS[: ROOMS.index(room)])
    modules = [*PACKAGE.glob(f"{room}.py"), *(PACKAGE / room).rglob("*.py")]
    assert modules
    named = {(str(path), name) for path in modules for text in texts(path) for name in NAME.findall(text)}
    assert {(path, name) for path, name in named if name in above} == set()


def test_every_match_says_what_the_rest_is() -> None:
    """Over a closed set that is ``assert_never``, so that the type checker names the place that a new member forgot."""
    open_ended = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Match) and ast.unparse(node.cases[-1].pattern) != "_"
    ]
    assert open_ended == []


def asked_for(node: ast.If) -> Iterator[str]:
    """Yield the classes that a chain of if and elif asks for, in each of its branches."""
    branch: ast.stmt | None = node
    while isinstance(branch, ast.If):
        for call in ast.walk(branch.test):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "isinstance":
                yield ast.unparse(call.args[1])
        branch = branch.orelse[0] if branch.orelse else None


def test_nothing_asks_stages_or_workloads_one_by_one() -> None:
    """What differs from one to the next is part of its declaration."""
    ladders = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.If)
        and sum(bool(re.search(r"\w(Stage|Workload)\b", asked)) for asked in asked_for(node)) > 1
    ]
    assert ladders == []


@pytest.mark.parametrize("program", Program)
def test_every_program_is_a_module(program: Program) -> None:
    assert find_spec(module_of(program)) is not None
