"""Make the texts that golden files hold, each part in one function: name of the file → text.

Everything is asked for as users ask: through the command line, and through ``print`` of a result. Captures are copied
first, so that nothing is written beside them, and paths of this machine are replaced by names.
"""

import base64
import hashlib
import io
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline_lab.cli.reference import list_commands
from pipeline_lab.errors import PipelineLabError
from pipeline_lab.options.run_options import RunOptions, read_options
from pipeline_lab.pipeline.lint import lint_pipeline
from pipeline_lab.pipeline.source import render_source
from tests.cli.support import call
from tests.pipeline.test_source import GOLDEN_OPTIONS
from tests.report import subjects

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
SAMPLES = ROOT / "profiles" / "samples"
REFERENCE = ROOT.parent / "shared" / "traces"
LONGEST = 20_000
"""Bytes of a golden file; a longer text is held as its size and digest, since its parts stand in other files."""
INSERTED = (
    {"stage": "cache"},
    {"stage": "cache", "where": "file"},
    {"stage": "shuffle", "buffer_size": 700},
    {"stage": "repeat"},
    {"stage": "repeat", "count": 2},
    {"stage": "prefetch"},
    {"stage": "prefetch", "buffer_size": 3},
    {"stage": "prefetch_to_device"},
    {"stage": "snapshot"},
    {"stage": "save", "compression": "gzip"},
    {"stage": "take", "count": 90},
    {"stage": "skip", "count": 9},
    {"stage": "shard", "num_shards": 3, "index": 1},
    {"stage": "random_shard", "num_shards": 4, "shard_size": 32},
    {"stage": "filter", "keep_percent": 40},
    {"stage": "unbatch"},
    {"stage": "batch", "size": 16},
    {"stage": "batch", "mode": "padded_batch", "size": 16},
    {"stage": "batch", "mode": "ragged_batch", "size": 16},
    {"stage": "rebatch", "size": 12},
    {"stage": "service"},
    {"stage": "service", "address": "localhost:5000", "sharding": "dynamic"},
    {"stage": "views"},
    {"stage": "parse"},
    {"stage": "augment"},
    {"stage": "map", "num_parallel_calls": 4, "deterministic": False},
    {"stage": "lookup"},
    {"stage": "bucket_by_sequence_length", "boundaries_s": [2, 4], "batch_sizes": [8, 4, 2]},
)


_LONG_NUMBER = re.compile(r"(?<![\w.])\d+\.\d{11,}(?:e[+-]?\d+)?(?![\w.])")

_NUMBERS = re.compile(r'(?<="bdata":")[^"]+(?=","dtype":"f8")')
"""Numbers of a chart, 8 bytes each."""


def _round(found: re.Match[str]) -> str:
    numbers = np.frombuffer(base64.b64decode(found[0]), "<f8")
    return base64.b64encode(np.array([float(f"{number:.10g}") for number in numbers], "<f8").tobytes()).decode()


def make(name: str) -> dict[str, str]:
    """Return the texts of one part, made in a folder whose name is always as long: paths are folded where a line ends."""
    with tempfile.TemporaryDirectory(dir="/tmp") as made, pytest.MonkeyPatch.context() as patch:
        folder = Path(made)
        for variable in ("PIPELINE_LAB_STORE", "PIPELINE_LAB_RUNTIME", "PIPELINE_LAB_CACHE"):
            patch.setenv(variable, str(folder / variable.lower()))
        patch.setenv("NO_COLOR", "1")
        patch.setenv("TZ", "UTC")
        return dict(PARTS[name](folder))


def write(texts: dict[str, str], folder: Path) -> None:
    """Write the texts into a folder, in place of what it held."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file, text in texts.items():
        (folder / file).write_text(text, encoding="utf-8")


def read(folder: Path) -> dict[str, str]:
    """Return the golden texts of a part, by file name."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*"))}


def shorten(text: str) -> str:
    """Return the text, or its size and digest where it is long; the last digits of numbers, which processors round differently, are left out."""
    content = _NUMBERS.sub(_round, _LONG_NUMBER.sub(lambda found: f"{float(found[0]):.10g}", text)).encode()
    if len(content) <= LONGEST:
        return content.decode()
    return f"{len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}\n"


def _sources(_folder: Path) -> Iterator[tuple[str, str]]:
    for name, options in GOLDEN_OPTIONS.items():
        advice = "".join(f"# {found.weight.value}: {found.sentence}\n" for found in lint_pipeline(options))
        yield f"{name}.txt", render_source(options, probe=True) + advice


def _positions(_folder: Path) -> Iterator[tuple[str, str]]:
    """Insert every stage at every place of every preset: per stage how many places refuse it, and a digest of it all."""
    for name, options in GOLDEN_OPTIONS.items():
        if options.is_assembled:
            yield f"{name}.txt", "".join(f"{_title(stage)}: {_placed(options, stage)}\n" for stage in INSERTED)


def _title(stage: dict[str, Any]) -> str:
    return " ".join(str(value) for value in stage.values())


def _placed(options: RunOptions, stage: dict[str, Any]) -> str:
    outcomes = [_inserted(options, place, stage) for place in range(1, len(options.pipeline.stages) + 1)]
    refused = sorted({text.removeprefix("refused: ") for text in outcomes if text.startswith("refused: ")})
    first = f", {refused[0][:150]!r}" if refused else ""
    return f"{len(refused)} refusals of {len(outcomes)} places, {_digest(' '.join(outcomes))}{first}"


def _inserted(options: RunOptions, place: int, stage: dict[str, Any]) -> str:
    document = options.model_dump(mode="json")
    document["pipeline"]["stages"].insert(place, stage)
    try:
        changed = read_options(document)
    except PipelineLabError as error:
        return f"refused: {error}"
    return render_source(changed) + _advice(changed)


def _advice(options: RunOptions) -> str:
    return "\n".join(f"{found.stage} {found.weight.value} {found.sentence}" for found in lint_pipeline(options))


def _captures(folder: Path) -> Iterator[tuple[str, Path]]:
    """Copy every capture, and yield its name and the copy."""
    found = [path for path in sorted(DATA.rglob("*.xplane.pb*")) if path.parent.parent.name != "run"]
    found += [path for path in (*sorted(SAMPLES.iterdir()), *sorted(REFERENCE.glob("P*"))) if path.is_dir()]
    for path in found:
        copied = folder / "captures" / path.name
        copied.parent.mkdir(exist_ok=True)
        (shutil.copytree if path.is_dir() else shutil.copy)(path, copied)
        shutil.rmtree(copied / "analysis", ignore_errors=True)
        yield path.name, copied


def _documents(folder: Path) -> Iterator[tuple[str, str]]:
    for name, path in _captures(folder):
        yield f"{name}.json", _said(folder, "analyze", path, "--json")


def _terminal(folder: Path) -> Iterator[tuple[str, str]]:
    for name, path in _captures(folder):
        yield f"{name}.txt", _said(folder, "analyze", path)
    samples = [folder / "captures" / name for name in ("sample-baseline", "sample-optimised")]
    yield "compare.txt", _said(folder, "compare", *samples)
    yield "what-if.txt", _said(folder, "what-if", samples[0], "--set", "pipeline.prefetch.buffer_size=2")
    for kind, report in _reports_made().items():
        yield f"print-{kind}.txt", _printed(report)


def _reports_made() -> dict[str, object]:
    return {
        "run": subjects.run_report(),
        "bare": subjects.bare_report(),
        "comparison": subjects.comparison_report(2),
        "race": subjects.race_report(),
    }


def _printed(report: object) -> str:
    from pipeline_lab.report.renderers.printed import write_short

    return write_short(report.content())


def _reports(folder: Path) -> Iterator[tuple[str, str]]:
    from pipeline_lab.report.formats import FORMATS

    for kind, report in _reports_made().items():
        for each in FORMATS:
            if each.name not in ("png", "svg"):
                for file, content in each.files(report).items():
                    yield f"{kind}-{each.name}-{file.replace('/', '-')}", _text_of(content)
    samples = [path for name, path in _captures(folder) if name.startswith("sample-")]
    for subject in ([samples[0]], [samples[1]], samples):
        title = "-".join(path.name for path in subject)
        for each in FORMATS:
            if each.name not in ("png", "svg"):
                output = folder / f"{title}.{each.name}.zip" if each.is_archive else folder / f"{title}.{each.name}"
                _said(folder, "report", *subject, "--format", each.name, "--output", output)
                yield f"{title}.{each.name}", _without_paths(folder, _text_of(output.read_bytes()))


def _text_of(content: bytes) -> str:
    """Return a file as text: an archive as names and digests of its members, anything else that is no text as its digest."""
    if content[:2] == b"PK":
        archive = zipfile.ZipFile(io.BytesIO(content))
        return "".join(f"{name} {_digest_bytes(archive.read(name))}\n" for name in archive.namelist())
    try:
        return content.decode()
    except UnicodeDecodeError:
        return _digest_bytes(content)


def _options(_folder: Path) -> Iterator[tuple[str, str]]:
    schema = call("options").stdout
    for number, start in enumerate(range(0, len(schema), LONGEST - 1000)):
        yield f"schema-{number:02}.json", schema[start : start + LONGEST - 1000]
    yield "presets.txt", call("presets").stdout
    yield "presets.json", call("presets", "--json").stdout


def _help(_folder: Path) -> Iterator[tuple[str, str]]:
    yield "pipeline-lab.txt", call("--help").stdout
    for name, _command in list_commands():
        yield f"{name.replace(' ', '-')}.txt", call(*name.split(), "--help").stdout


def _said(folder: Path, *arguments: str | Path) -> str:
    ended = call(*arguments)
    text = ended.stdout if ended.exit_code == 0 else f"exit {ended.exit_code}\n{ended.stdout}{ended.stderr}"
    return _without_paths(folder, text)


def _without_paths(folder: Path, text: str) -> str:
    return text.replace(str(folder), "FOLDER").replace(os.path.realpath(folder), "FOLDER").replace(str(ROOT), "ROOT")


def _digest(text: str) -> str:
    return _digest_bytes(text.encode())


def _digest_bytes(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


PARTS: dict[str, Callable[[Path], Iterator[tuple[str, str]]]] = {
    "sources": _sources,
    "positions": _positions,
    "documents": _documents,
    "terminal": _terminal,
    "reports": _reports,
    "options": _options,
    "help": _help,
}
