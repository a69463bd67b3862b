"""``python -m benchmarks.structure``: the shape of the package in figures, counted from its own source.

Lines and files, how full the folders are, imports that run against the street, circles of modules, names that mean
several things, what ``pipeline-lab analyze`` imports, which rooms call each other on its way, and how many files and rooms a
reader passes through who follows it, or adds something, by CONTRIBUTING.md.
"""

import ast
import collections
import contextlib
import io
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType

import platformdirs
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "pipeline_lab"
FULL_FOLDER = 15
SAMPLE = ROOT / "profiles" / "samples" / "sample-baseline"


def main() -> None:
    modules = {_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
    imports = {name: set(_imported(path, modules)) for name, path in modules.items()}
    changes, climbs = _room_changes()
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in modules.values())
    rows = [
        ("files", len(modules), "≤ 380"),
        ("lines", lines, "≤ 52,000"),
        ("folders with more than 15 entries", _listed(_full_folders()), "none"),
        ("modules that analyze loads for a log", _closure("analyze_log"), "≤ 120"),
        ("modules that it loads for a run of ours, which it also predicts", _closure("analyze_sample"), ""),
        ("from analyze to its answer, by the guide", _describe_flow(guide, "From `analyze`"), "≤ 6 changes"),
        ("from Launch to the first chart, by the guide", _describe_flow(guide, "From *Launch*"), ""),
        ("files that a new stage touches, by the guide", _touched(guide, "Stage"), "≤ 2"),
        ("files that a new analysis touches, by the guide", _touched(guide, "Analysis"), "≤ 2"),
        ("rooms that call each other while analyze runs", _listed([" → ".join(pair) for pair in changes]), ""),
        (
            "of these, up the street, by objects and functions handed down",
            _listed([" → ".join(pair) for pair in climbs]),
            "",
        ),
        ("imports back up the street", _listed(_climbing(imports)), "none"),
        ("modules in circles", _listed(_in_circles(imports)), "none"),
        ("basenames used more than once", _listed(_repeated(path.stem for path in modules.values())), ""),
        ("class names used more than once", _listed(_repeated(_classes(modules.values()))), ""),
        ("modules with one importer, of their own room", _listed(_lone(imports)), ""),
    ]
    table = Table("what", "counted", "aim")
    for title, counted, aim in rows:
        table.add_row(title, str(counted), aim)
    Console().print(table)


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _room(module: str) -> str:
    return module.split(".")[1] if "." in module else "api"


def _order() -> list[str]:
    """Return the rooms from the ground up, as the import contract lists them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    return [room.strip() for layer in reversed(layers) for room in layer.replace(":", "|").split("|")]


def _imported(path: Path, modules: dict[str, Path]) -> Iterator[str]:
    """Yield the modules that a file imports when it is imported, type checking left out."""
    for node in _running(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield from [one for one in (name, node.module) if one in modules][:1]


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        yield node
        yield from _running(node)


def _full_folders() -> list[str]:
    found = []
    for folder in sorted(path for path in [PACKAGE, *PACKAGE.rglob("*")] if path.is_dir()):
        entries = [one for one in folder.iterdir() if one.name not in ("__pycache__", "__init__.py")]
        if len(entries) > FULL_FOLDER and folder.name != "__pycache__":
            found.append(f"{folder.relative_to(ROOT)} {len(entries)}")
    return found


def _climbing(imports: dict[str, set[str]]) -> list[str]:
    order = {room: number for number, room in enumerate(_order())}
    return sorted(
        f"{name} → {other}"
        for name, others in imports.items()
        for other in others
        if order.get(_room(other), -1) > order.get(_room(name), len(order))
    )


def _in_circles(imports: dict[str, set[str]]) -> list[str]:
    """Return the modules that reach themselves by their imports, those inside functions included."""
    reach: dict[str, set[str]] = {name: set(others) for name, others in imports.items()}
    is_growing = True
    while is_growing:
        is_growing = False
        for name, found in reach.items():
            wider = found.union(*(reach[other] for other in found)) if found else found
            is_growing |= len(wider) > len(found)
            reach[name] = wider
    return [name for name, found in reach.items() if name in found]


def _repeated(names: Iterator[str]) -> list[str]:
    counted = collections.Counter(name for name in names if not name.startswith("__"))
    return [f"{name} ×{count}" for name, count in counted.most_common() if count > 1]


def _classes(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name


def _lone(imports: dict[str, set[str]]) -> list[str]:
    importers = collections.defaultdict(set)
    for name, others in imports.items():
        for other in others:
            importers[other].add(name)
    return [
        name
        for name, users in importers.items()
        if len(users) == 1 and next(iter(users)).rpartition(".")[0] == name.rpartition(".")[0]
    ]


def _closure(analysis: str) -> int:
    """Count the modules of ours that are loaded once an analysis has run, in a process that keeps nothing."""
    code = f"import sys; from benchmarks.structure import {analysis}; {analysis}(); " + (
        "print(sum(name.startswith('pipeline_lab.') and hasattr(module, '__file__') and not hasattr(module, '__path__')"
        " for name, module in sys.modules.items()))"
    )
    compiled = os.environ.get("NUMBA_CACHE_DIR") or str(platformdirs.user_cache_path("pipeline-lab") / "compiled")
    with tempfile.TemporaryDirectory() as cache:
        own = {**os.environ, "XDG_CACHE_HOME": cache, "NUMBA_CACHE_DIR": compiled}
        ended = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env=own, capture_output=True, text=True, check=True
        )
    return int(ended.stdout.split()[-1])


def analyze_sample() -> None:
    """Run ``pipeline-lab analyze`` in this process on a copy of a bundled sample that nobody has analyzed yet."""
    with tempfile.TemporaryDirectory() as folder:
        _analyze(shutil.copytree(SAMPLE, Path(folder) / SAMPLE.name, ignore=shutil.ignore_patterns("analysis")))


def analyze_log() -> None:
    """Run it on the sample's traces alone, as on any log that TensorFlow wrote."""
    with tempfile.TemporaryDirectory() as folder:
        _analyze(shutil.copytree(SAMPLE / "plugins", Path(folder) / "log" / "plugins").parent)


def _analyze(path: Path) -> None:
    from pipeline_lab.cli import main as command

    sys.argv = ["pipeline-lab", "analyze", str(path)]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        command()


def _room_changes() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the pairs of rooms between which a call passes, and those that lead to a room above."""
    analyze_sample()  # everything is imported and compiled before calls are counted
    seen: dict[tuple[str, str], int] = {}

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event != "call" or frame.f_back is None:
            return
        to, from_ = frame.f_globals.get("__name__", ""), frame.f_back.f_globals.get("__name__", "")
        if to.startswith("pipeline_lab.") and from_.startswith("pipeline_lab.") and _room(to) != _room(from_):
            pair = _room(from_), _room(to)
            seen[pair] = seen.get(pair, 0) + 1

    sys.setprofile(note)
    try:
        analyze_sample()
    finally:
        sys.setprofile(None)
    order = {room: number for number, room in enumerate(_order())}
    plain = {"errors", "units", "folders", "fields", "display", "version", "statistics"}
    pairs = [pair for pair in seen if pair[1] not in plain]
    return pairs, [pair for pair in pairs if order.get(pair[1], -1) > order.get(pair[0], len(order))]


def _describe_flow(guide: str, begin: str) -> str:
    """Count the files that a paragraph of the guide leads through, and how often the next one is in another room."""
    paragraph = guide[guide.index(f"\n{begin}") :].strip().partition("\n\n")[0]
    names = re.findall(r"`([\w/]+\.py)`", paragraph)
    rooms = [name.split("/")[0] for name in names if "/" in name]  # a bare name is in the room of the one before
    changes = sum(room != before for before, room in itertools.pairwise(rooms))
    return f"{len(names)} files, {changes} changes of room"


def _touched(guide: str, kind: str) -> int:
    """Count the modules that the guide's example of a kind writes or adds to."""
    section = guide[guide.index(f"\n### {kind}\n") :].partition("\n### ")[2].partition("\n### ")[0]
    return len(set(re.findall(r"^# (pipeline_lab/[\w/]+\.\w+)", section, re.MULTILINE)))


def _listed(names: list[str]) -> str:
    return f"{len(names)}: {', '.join(names[:12])}{' …' if len(names) > 12 else ''}" if names else "none"


if __name__ == "__main__":
    main()
