"""The scripts of the benchmark: where each is published, and what we change in it so that it runs here in seconds.

None of their text is kept in this project. An entry of ``entries/*.toml`` names repository, path and commit, and holds our own
short substitutions: they shrink epochs and models, and put synthesized data of the right shape in the place of downloads.
"""

import hashlib
import json
import re
import subprocess
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ENTRIES = Path(__file__).parent / "entries"
IMPORT = "import stand_ins\n"
"""First line of every patched script; the data that a script would download comes from there."""


@dataclass(frozen=True)
class Change:
    """A change of the script that may make it faster.

    Attributes:
        name: Unique within the script.
        kind: What a suggestion has to propose to mean this change; a key of ``score.WORDS``.
        replace: Our substitutions, pairs of text.
        effect: What it does to what the model sees: ``nothing``, ``order`` (of the examples, or how far they are mixed) or ``content``.
    """

    name: str
    kind: str
    replace: tuple[tuple[str, str], ...]
    effect: str = "nothing"


@dataclass(frozen=True)
class Entry:
    """One script.

    Attributes:
        name: Unique.
        repository, commit, path: Where it is published.
        style: What kind of job it is.
        loop: Text of the line whose loop trains; ``fit`` where Keras trains.
        call: Part of the call that costs most of the input, as a suggestion should name it; empty where the step is the limit
            in every case.
        epochs: In the measurement of the truth, and under ``watch``.
        data: Calls of ``stand_ins`` that write its files before it runs.
        start, until: The text is taken from the first line that contains ``start`` up to the one that contains ``until``.
        replace: Our substitutions, pairs of text.
        changes: Candidates for what helps most.
        given_set: The set that it belongs to, where its name does not tell: ``fresh``, ``unseen``, ``later`` and ``last`` for those that were chosen after all rules were set.
    """

    name: str
    repository: str
    commit: str
    path: str
    style: str
    loop: str
    call: str
    epochs: tuple[int, int]
    data: tuple[str, ...]
    start: str
    until: str
    replace: tuple[tuple[str, str], ...]
    changes: tuple[Change, ...]
    given_set: str = ""

    @property
    def set(self) -> str:
        """Thresholds and rules are set on ``tune``; the others judge them, and are looked at once."""
        return self.given_set or ("tune", "score")[hashlib.sha256(self.name.encode()).digest()[0] % 2]

    def text(self, sources: Path, change: Change | None = None, *, epochs: int) -> str:
        """Return the patched script.

        Args:
            sources: Folder of clones, ``OWNER+NAME`` each.
            change: To apply as well.
            epochs: To train.

        Raises:
            ValueError: A substitution has nothing to replace: the entry does not fit the commit.
        """
        text = _between(read_source(sources, self), self.start, self.until)
        for old, new in (*self.replace, *(() if change is None else change.replace)):
            if old not in text:
                raise ValueError(f"{self.name}: there is no {old!r}")
            text = text.replace(old, new)
        return IMPORT + text.replace("$EPOCHS", str(epochs))


def read_entries(names: list[str] | None = None, chosen: str = "all") -> list[Entry]:
    """Return the scripts, those of a set or whose name contains one of the texts."""
    found = [
        _entry(table)
        for path in sorted(ENTRIES.glob("*.toml"))
        for table in tomllib.loads(path.read_text(encoding="utf-8"))["script"]
    ]
    return [
        entry
        for entry in found
        if chosen in ("all", entry.set) and (not names or any(name in entry.name for name in names))
    ]


def _entry(table: dict) -> Entry:
    return Entry(
        name=table["name"],
        repository=table["repository"],
        commit=table["commit"],
        path=table["path"],
        style=table["style"],
        loop=table.get("loop", "fit"),
        call=table.get("call", ""),
        epochs=tuple(table["epochs"]),
        data=tuple(table.get("data", ())),
        start=table.get("start", ""),
        until=table.get("until", ""),
        replace=_pairs(table.get("replace", ())),
        changes=tuple(
            Change(change["name"], change["kind"], _pairs(change["replace"]), change.get("effect", "nothing"))
            for change in table.get("change", ())
        ),
        given_set=table.get("set", ""),
    )


def _pairs(rows: Iterable[Iterable[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((old, new) for old, new in rows)


def _between(text: str, start: str, until: str) -> str:
    lines = text.splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if start in line) if start else 0
    last = (
        next(number for number, line in enumerate(lines) if until in line and number > first) if until else len(lines)
    )
    return "".join(lines[first:last])


def read_source(sources: Path, entry: Entry) -> str:
    """Return a published script at its commit; of a notebook, its cells of code."""
    clone = sources / entry.repository.replace("/", "+")
    shown = subprocess.run(
        ["git", "-C", str(clone), "show", f"{entry.commit}:{entry.path}"], capture_output=True, text=True, check=True
    ).stdout
    if not entry.path.endswith(".ipynb"):
        return shown
    cells = ["".join(cell["source"]) for cell in json.loads(shown)["cells"] if cell["cell_type"] == "code"]
    return "\n\n".join(re.sub(r"^(\s*)([%!].*)$", r"\1pass", cell, flags=re.MULTILINE) for cell in cells) + "\n"
