"""The recipe of a script: the calls that made its datasets, each with its place in the user's files (``recipe.json``).

The job's process notes it (:mod:`pipeline_lab.worker.recipe`); everything that names a stage in the user's words reads it.
Importing this module loads neither TensorFlow nor pydantic.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import StoreError

SCHEMA_VERSION = 1
"""1: calls, uses, files; calls may say which operations of their functions keep a state (``stateful``)."""

_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
COPIES = "sources"
"""Folder beside the recipe with the copies of the user's files."""
INSIDE = " → "
"""Between the call of a library's function and what that calls."""
TRAINING, VALIDATION, EVALUATION, PREDICTION = "training", "validation", "evaluation", "prediction"
ADAPTING, LOOP = "adapting", "loop"
"""What a dataset was read for: by Keras' ``fit`` and its kin, to adapt a layer, or by a loop of the user's own."""


def is_installed(file: str) -> bool:
    """Say whether a file belongs to an installed package."""
    return any(folder in file for folder in _INSTALLED)


@dataclass(frozen=True)
class SourcePlace:
    """A range of one of the user's files.

    Attributes:
        file: Its path.
        line, end_line: First and last line of the expression, from 1.
        column, end_column: Where it begins and ends in them, in bytes of UTF-8 from 0; None where Python does not tell.
        name_line: The line that a reader is shown: where the name of what is called stands.
        scope: Qualified name of the function around it.
    """

    file: str
    line: int
    end_line: int
    column: int | None
    end_column: int | None
    name_line: int
    scope: str = "<module>"

    def __str__(self) -> str:
        return f"{PurePath(self.file).name}:{self.name_line}"


@dataclass(frozen=True)
class UserFunction:
    """A Python function that a call was given.

    Attributes:
        name: Qualified.
        module: Its module.
        file: Empty where it has no source.
        line, end_line: Of its source; 0 where it has none.
    """

    name: str
    module: str = ""
    file: str = ""
    line: int = 0
    end_line: int = 0

    @property
    def short_name(self) -> str:
        return self.name.rpartition("<locals>.")[2]

    def __str__(self) -> str:
        return f"{self.short_name} ({PurePath(self.file).name}:{self.line})" if self.file else self.short_name


OF_KERAS = frozenset({"PyDataset", "Sequence"})
"""Kinds of Python that Keras 3 and Keras 2 make a dataset of."""


@dataclass(frozen=True)
class PythonPart:
    """Python that runs for the elements of a stage.

    Attributes:
        kind: ``py_function``, ``numpy_function``, ``generator``, ``PyDataset``, or ``Sequence`` of Keras 2.
        function: What is run.
        place: Of the call of ``tf.py_function`` and its like; None without one.
        maker: Number of the ``PyDataset`` or ``Sequence``, by which it is told from others of its class; None of something else.
        calls: What of the user's a class of Keras' own runs: the function, or the class, of an ``ImageDataGenerator``.
    """

    kind: str
    function: UserFunction
    place: SourcePlace | None = None
    maker: int | None = None
    calls: UserFunction | None = None


@dataclass(frozen=True)
class DatasetCall:
    """One call that made a dataset.

    Attributes:
        number: By which others name it.
        method: Of ``tf.data.Dataset``, or the class that was called.
        arguments: By name: plain values as they are, others described, such as ``{"array": [60000, 28, 28], "dtype": "uint8"}``.
        inputs: Numbers of the calls whose datasets it takes.
        inner: Number of the call whose dataset its function returns, as in ``interleave``; None without one.
        place: Of the expression; None where no line of the user's made it.
        text: As the user wrote it, shortened: ``.map(load)``.
        is_direct: Whether the user called it; else a function of a library did, and place and text are that function's call.
        is_understood: Whether its arguments are known; a dataset made in another way has its class alone.
        nodes: Names of its datasets in traces and graphs.
        python: Python that it runs.
        stateful: Kinds of operations in its functions that give something else each time, or keep a state: ``RandomUniform``,
            ``AssignAddVariableOp``; with ``(seeded)`` where the user or the script has set a seed; ``unseen`` where nobody looked.
    """

    number: int
    method: str
    arguments: dict[str, Any] = field(default_factory=dict)
    inputs: tuple[int, ...] = ()
    inner: int | None = None
    place: SourcePlace | None = None
    text: str = ""
    is_direct: bool = True
    is_understood: bool = True
    nodes: tuple[str, ...] = ()
    python: tuple[PythonPart, ...] = ()
    stateful: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The call as the user wrote it; for one inside a library's function, that function's call and, without Python, the method."""
        if not self.text:
            return f".{self.method}(…)"
        if self.is_direct or self.python:
            return self.text
        return f"{self.library_call}{INSIDE}{self.method}"

    @property
    def library_call(self) -> str:
        """The user's call of a library's function that made it, without the arguments if they are long."""
        return f"{self.text.partition('(')[0]}(…)" if self.text.endswith("…") else self.text


@dataclass(frozen=True)
class DatasetUse:
    """Where a dataset was iterated over.

    Attributes:
        role: What for; see above.
        call: Number of the call that made it.
        place: Of ``fit``, or of the loop.
        text: As the user wrote it.
        iterators: How many iterators were made there.
        pool_threads: Threads that run the dataset's functions; None where its options leave them to tf.data.
        length: Elements; None where they have no end, or their number is not known.
        reads_state: Its functions read variables or tables, which others may change between epochs.
        seconds: From each time it was begun until another dataset was read, but for validation, in all.
        trained_steps: Steps of a loop in which gradients were taken, as far as that was seen.
        carried_over: Why workers would carry batches of a ``PyDataset`` or ``Sequence`` over from one epoch to the next; empty where they
            would not, None where Keras makes no batches of one.
    """

    role: str
    call: int
    place: SourcePlace | None
    text: str
    iterators: int
    pool_threads: int | None = None
    seconds: float = 0.0
    length: int | None = None
    reads_state: bool = False
    trained_steps: int = 0
    carried_over: str | None = None


@dataclass(frozen=True)
class Recipe:
    """The calls behind all datasets that a script read, and what it read them for.

    Attributes:
        calls: Each after its inputs.
        uses: In the order in which they began.
        files: Name of the copy in the run folder by the path of each of the user's files.
        copies: Where these are; None while the script runs.
    """

    calls: tuple[DatasetCall, ...] = ()
    uses: tuple[DatasetUse, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    copies: Path | None = field(default=None, compare=False)

    def text(self, file: str) -> str | None:
        """Return one of the user's files as it was when the script ran; None where it is not at hand."""
        path = Path(file) if self.copies is None else self.copies / PurePath(self.files.get(file, "")).name
        try:
            return path.read_bytes().decode()
        except (OSError, ValueError):
            return None

    def call(self, number: int) -> DatasetCall:
        return self._by_number[number]

    @cached_property
    def _by_number(self) -> dict[int, DatasetCall]:
        return {call.number: call for call in self.calls}

    @property
    def trained(self) -> DatasetUse | None:
        """The dataset that was trained on: of those that ``fit`` got the longest read, else what loops took gradients for, or read, most often."""
        fits = [use for use in self.uses if use.role == TRAINING]
        loops = [use for use in self.uses if use.role == LOOP]
        return max(fits, key=lambda use: use.seconds, default=None) or max(
            loops, key=lambda use: (use.trained_steps, use.iterators, use.seconds), default=None
        )

    def upstream(self, number: int, *, inside: bool = True) -> Iterator[DatasetCall]:
        """Yield a call and all that its dataset is made of, the consumer first; what a function returns comes last.

        Args:
            number: Of the call.
            inside: Also what functions return.
        """
        seen: set[int] = set()
        left = [number]
        while left:
            call = self.call(left.pop(0))
            if call.number in seen:
                continue
            seen.add(call.number)
            yield call
            inner = () if call.inner is None or not inside else (call.inner,)
            left = [*call.inputs, *inner, *left]

    def may_use(self, file: str, name: str) -> bool:
        """Say whether another of the user's files names what one of them defines, and that file's module."""
        path = PurePath(file)
        module = path.parent.name if path.stem == "__init__" else path.stem
        others = [self.text(other) or "" for other in self.files if other != file]
        return any(all(re.search(rf"\b{each}\b", other) for each in (module, name)) for other in others)

    def to_json(self) -> str:
        document = asdict(self)
        del document["copies"]
        return json.dumps({"schema_version": SCHEMA_VERSION, **document}, indent=1)


def read_recipe(path: Path) -> Recipe | None:
    """Return the recipe of a run; None if it has none.

    Raises:
        StoreError: The document is damaged.
    """
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        calls = tuple(map(_call, document["calls"]))
        uses = tuple(DatasetUse(**{**use, "place": _place(use["place"])}) for use in document["uses"])
        files = {str(file): str(name) for file, name in document["files"].items()}
        return Recipe(calls, uses, files, path.parent / COPIES)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{path.name} of the run is damaged: {error}; record the run again.") from None


def _call(document: dict[str, Any]) -> DatasetCall:
    read = {
        "inputs": tuple(document["inputs"]),
        "nodes": tuple(document["nodes"]),
        "stateful": tuple(document.get("stateful", ())),
        "place": _place(document["place"]),
        "python": tuple(
            PythonPart(
                part["kind"],
                UserFunction(**part["function"]),
                _place(part["place"]),
                part.get("maker"),
                None if part.get("calls") is None else UserFunction(**part["calls"]),
            )
            for part in document["python"]
        ),
    }
    return DatasetCall(**{**document, **read})


def _place(document: dict[str, Any] | None) -> SourcePlace | None:
    return None if document is None else SourcePlace(**document)
