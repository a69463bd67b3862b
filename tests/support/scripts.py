"""A watched script whose predictions add up in the head: batches of ten, 2 ms of map for each example, a step of 5 ms."""

from dataclasses import replace
from typing import Any

from pipeline_lab.advice.script.script_run import ScriptRun
from pipeline_lab.advice.script.script_stages import ScriptStage
from pipeline_lab.pipeline.recipe import (
    TRAINING,
    DatasetCall,
    DatasetUse,
    PythonPart,
    Recipe,
    SourcePlace,
    UserFunction,
)

MS = 1_000_000
FILE = "/home/me/train.py"
DECODE = PythonPart("py_function", UserFunction("decode", "__main__", FILE, 7, 12))


def place(line: int) -> SourcePlace:
    return SourcePlace(FILE, line, line, 4, 30, line)


def recipe(*middle: DatasetCall, python: tuple[PythonPart, ...] = (), batched: bool = True) -> Recipe:
    """Return files → interleave or what is given → map → batch, as ``fit`` reads it; calls number as they stand, from line 41."""
    source = DatasetCall(
        1, "TFRecordDataset", {"filenames": ["a", "b"]}, place=place(40), text="TFRecordDataset(files)"
    )
    calls = [source, *middle]
    mapped = DatasetCall(
        len(calls) + 1,
        "map",
        {"map_func": {"function": "load"}},
        (calls[-1].number,),
        place=place(41),
        text=".map(load)",
    )
    calls.append(replace(mapped, python=python))
    if batched:
        number = len(calls) + 1
        calls.append(
            DatasetCall(number, "batch", {"batch_size": 10}, (number - 1,), place=place(42), text=".batch(10)")
        )
    use = DatasetUse(TRAINING, calls[-1].number, place(50), "model.fit(data)", 1)
    return Recipe(tuple(calls), (use,))


def stages(map_ms: float = 2.0, *, prefetch: bool = True, python: float = 0.0) -> tuple[ScriptStage, ...]:
    """Return what runs of it: the map takes ``map_ms`` for each of ten examples, nothing else takes any time."""
    found = [
        ScriptStage("Root", None, 0.0),
        *([ScriptStage("Prefetch", 0, 0.0, works_ahead=True)] if prefetch else []),
    ]
    last = len(found) - 1
    return (
        *found,
        ScriptStage("BatchV2", last, 0.0, 1.0, (3,), element_bytes=10_000, words="train.py:42 .batch(10)"),
        ScriptStage(
            "Map",
            last + 1,
            10 * map_ms * MS,
            10.0,
            (2,),
            python_share=python,
            element_bytes=1000,
            words="train.py:41 .map(load)",
        ),
        ScriptStage(
            "TFRecord", last + 2, 0.0, 10.0, (1,), element_bytes=500, words="train.py:40 TFRecordDataset(files)"
        ),
    )


def script(**more: Any) -> ScriptRun:
    """Return a script on four cores with four threads of the pool, whose map sleeps; times may be given in ms."""
    values: dict[str, Any] = {
        "recipe": recipe(),
        "stages": stages(),
        "step_ms": 20.0,
        "ceiling_ms": 5.0,
        "cores": 4.0,
        "pool_threads": 4,
        "step_cpu_ms": 4.0,
        "cpu_share": 0.0,
        "is_calibrated": True,
    }
    return ScriptRun(**dict(_in_ns(name, value) for name, value in (values | more).items()))


def _in_ns(name: str, value: Any) -> tuple[str, Any]:
    return (name.removesuffix("_ms") + "_ns", value and value * MS) if name.endswith("_ms") else (name, value)
