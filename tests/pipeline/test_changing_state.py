"""What a pipeline's functions read and the script changes between epochs, by the source alone."""

import pytest

from pipeline_lab.pipeline.changes import Insert, MoveBefore
from pipeline_lab.pipeline.changing_state import find_changed_state
from pipeline_lab.pipeline.recipe import (
    TRAINING,
    DatasetCall,
    DatasetUse,
    PythonPart,
    Recipe,
    SourcePlace,
    UserFunction,
)

FILE = "/home/user/train.py"
CACHE = Insert(1, "cache")


def changed(text: str, *, is_python: bool = True) -> str:
    """Return what the function that is marked with ``# reads`` reads and the script changes; ``fit(`` is the training."""
    lines = text.splitlines()
    reads = next(number for number, line in enumerate(lines, 1) if line.endswith("# reads"))
    fits = [number for number, line in enumerate(lines, 1) if "fit(" in line]
    function = UserFunction("f", "", FILE, reads)
    call = (
        DatasetCall(1, "map", python=(PythonPart("py_function", function),))
        if is_python
        else DatasetCall(1, "map", {"map_func": {"function": "f", "file": FILE, "line": reads, "end_line": reads}})
    )
    uses = [DatasetUse(TRAINING, 1, SourcePlace(FILE, line, line, 0, 1, line), "", 1) for line in fits]
    found = find_changed_state(Recipe((call,), tuple(uses)), CACHE, {FILE: text})
    assert found is None or str(found) == f"f reads {found.name}, which train.py:{found.line} changes"
    return "" if found is None else f"{found.name}:{found.line}"


READER = """\
class Reader:
    def __init__(self, files):
        self.blur, self.files = 4, files
        self.scan()

    def scan(self):
        self.found = len(self.files)

    def smooth(self, x):
        return x * self.blur * self.found

    def __call__(self):  # reads
        yield self.smooth(1)

"""


@pytest.mark.parametrize(
    ("rest", "found"),
    [
        ("fit(ds)", ""),
        ("class C:\n    def on_epoch_begin(self, epoch):\n        self.reader.blur = 2\nfit(ds)", "blur:17"),
        ("c = Lambda(lambda epoch: setattr(reader, 'blur', 2))\nfit(ds)", "blur:15"),
        ("def cool():\n    reader.blur -= 1\nfit(ds)\ncool()", "blur:16"),
        ("def cool():\n    reader.blur -= 1\ncool()\nfit(ds)", ""),  # before the training only
        ("reader.blur = 2\nfit(ds)", ""),
        ("fit(ds)\nreader.blur = 2\nfit(ds)", "blur:16"),
        ("for epoch in range(3):\n    reader.blur = 2\n    fit(ds)", "blur:16"),
        ("for each in range(3):\n    reader.blur = 2\nfit(ds)", ""),
        ("def main():\n    reader.blur = 2\n    fit(ds)\nmain()", ""),
        ("class C:\n    def on_epoch_end(self):\n        random.shuffle(self.reader.files)\nfit(ds)", ""),
        ("class C:\n    def on_epoch_end(self):\n        random.shuffle(self.found)\nfit(ds)", "found:17"),
        ("class C:\n    def __init__(self):\n        self.blur = 2\nfit(ds)", ""),
        ("def other():\n    blur = []\n    blur.append(1)\nfit(ds)", ""),  # a variable of its own
    ],
)
def test_attributes_that_python_reads(rest: str, found: str) -> None:
    assert changed(READER + rest) == found


FUNCTION = "state = {}\ndef read(x):  # reads\n    return x * scale(state)\ndef scale(given):\n    return factor * given['a']\n"


@pytest.mark.parametrize(
    ("rest", "found"),
    [
        ("fit(ds)", ""),
        ("def later(epoch):\n    state['a'] = epoch\nfit(ds)", "state:7"),
        ("def later(epoch):\n    state.update(a=epoch)\nfit(ds)", "state:7"),
        ("def later(epoch):\n    global factor\n    factor = 2\nfit(ds)", "factor:7"),
        ("def later(epoch):\n    factor = 2\nfit(ds)", ""),
        ("for factor in range(3):\n    fit(ds)", "factor:6"),
        ("factor = 2\nfit(ds)", ""),
    ],
)
def test_variables_that_python_reads(rest: str, found: str) -> None:
    assert changed(FUNCTION + rest) == found


def test_a_variable_of_the_function_around_is_shared() -> None:
    text = (
        "def main():\n    state = {}\n    def read(x):  # reads\n        return x * state['a']\n"
        "    def later(epoch):\n        state['a'] = epoch\n    fit(ds, later)\nmain()\n"
    )
    assert changed(text) == "state:6"
    deeper = text.replace(
        "    def read(x):  # reads\n        return", "    def make():\n     def read(x):  # reads\n      return"
    )
    assert changed(deeper) == "state:7"
    own = (
        "def main():\n    state = {}\n    def read(x):  # reads\n        return x * state['a']\n"
        "    for epoch in range(3):\n        state['a'] = epoch\n        fit(ds)\nmain()\n"
    )
    assert changed(own) == "state:6"


@pytest.mark.parametrize(
    ("rest", "found"),
    [
        ("model.strength = 0.5", ""),
        ("strength.assign(0.5)", "strength:4"),
        ("self.strength.assign_add(0.5)", "strength:4"),
        ("strength = 0.5", ""),
    ],
)
def test_functions_of_tensorflow_read_variables_alone(rest: str, found: str) -> None:
    text = f"def f(x):  # reads\n    return x * strength\ndef later(epoch):\n    {rest}\nfit(ds)\n"
    assert changed(text, is_python=False) == found


def test_a_file_that_is_no_python_hides_nothing() -> None:
    call = DatasetCall(1, "map", python=(PythonPart("py_function", UserFunction("f", "", FILE, 1)),))
    assert find_changed_state(Recipe((call,)), CACHE, {FILE: "def f(:"}) is None


def test_what_keeps_no_elements_depends_on_nothing() -> None:
    call = DatasetCall(1, "map", python=(PythonPart("py_function", UserFunction("f", "", FILE, 1)),))
    text = "def f(x):\n    return x * factor\ndef later():\n    global factor\n"
    for edit, is_found in (
        (Insert(1, "prefetch"), False),
        (MoveBefore(1, 1), False),
        (MoveBefore(1, 1, "cache"), True),
    ):
        assert (find_changed_state(Recipe((call,)), edit, {FILE: text}) is not None) is is_found
