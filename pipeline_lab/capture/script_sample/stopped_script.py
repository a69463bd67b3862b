"""Run a script up to the place where it reads a dataset, and read that dataset instead."""

import contextlib
import functools
import hashlib
import importlib.machinery
import inspect
import io
import linecache
import random
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from pipeline_lab.capture.script_sample.compared_predicts import PredictComparison
from pipeline_lab.capture.script_sample.counted_steps import CountedSteps
from pipeline_lab.capture.script_sample.leaving import until_reached
from pipeline_lab.capture.script_sample.python_calls import PythonCalls
from pipeline_lab.capture.script_sample.sample_reader import SampleReader
from pipeline_lab.capture.watch_script import run_module, run_script
from pipeline_lab.pipeline.first_steps import StepsRequest
from pipeline_lab.pipeline.predict_samples import PredictRequest
from pipeline_lab.pipeline.samples import Draws, Sample, SampleRequest
from pipeline_lab.worker.note.failures import describe

SEED = 20_000
Request: TypeAlias = SampleRequest | PredictRequest | StepsRequest


class NotReachedError(RuntimeError):
    """The script ends by itself, and has not read the dataset."""


def run_and_read(request: SampleRequest) -> Sample:
    """Run a script up to the place, in this process.

    Raises:
        RuntimeError: The script does not come there.
    """
    from pipeline_lab.capture.script.live_iterators import note_new_iterators
    from pipeline_lab.capture.script.noted_datasets import note_new_datasets
    from pipeline_lab.worker.recipe import wrapping

    note_new_iterators()
    note_new_datasets()
    python = PythonCalls(draws_anew=request.draws == Draws.BY_ELEMENT.value, waits=request.python_waits)
    reader = SampleReader(request, python.begin_pass)
    wrapping.readers.append(reader.note)
    try:
        in_order = _in_order() if request.draws == Draws.IN_ORDER.value else contextlib.nullcontext()
        with (
            until_reached(),
            _instead_of_files(request.texts),
            _files_elsewhere(Path(f"{request.values}-files")),
            in_order,
            python.in_place(),
        ):
            _set_seeds(SEED if request.is_seeded else None)
            python.refusal = ""
            _run(request)
    except SystemExit as error:
        if error.code:
            raise RuntimeError(f"the script ends with exit code {error.code} before it reads the dataset") from None
    finally:
        wrapping.readers.remove(reader.note)
    if python.refusal:
        raise RuntimeError(python.refusal)
    if reader.refusal is not None:
        raise reader.refusal
    if reader.sample is None:
        raise NotReachedError(f"the script ends before it reads the dataset at {request.reading}")
    return reader.sample


def compare_predicts(request: PredictRequest, files: Path) -> dict[str, Any]:
    """Run a script until its calls of ``predict`` have been made both ways, or those of ``predict_on_batch`` counted.

    Args:
        request: What is wanted.
        files: Folder for what caches keep.
    """
    comparison = PredictComparison(request)
    with contextlib.suppress(SystemExit), until_reached(), _instead_of_files(request.texts), _files_elsewhere(files):
        _set_seeds(SEED)
        with comparison.in_place():
            _run(request)
    return {"calls": [asdict(each) for each in comparison.calls], "counted": comparison.counted}


def train_first_steps(request: StepsRequest, files: Path) -> dict[str, Any]:
    """Run a script until it has trained a few steps.

    Args:
        request: What is wanted.
        files: Folder for what caches keep.
    """
    from pipeline_lab.capture.script.live_iterators import note_new_iterators
    from pipeline_lab.capture.script.noted_datasets import note_new_datasets

    note_new_iterators()
    note_new_datasets()
    steps = CountedSteps(request)
    in_order = _in_order() if request.draws == Draws.IN_ORDER.value else contextlib.nullcontext()
    with (
        contextlib.suppress(SystemExit),
        until_reached(),
        _instead_of_files(request.texts),
        _files_elsewhere(files),
        in_order,
        steps.in_place(),
    ):
        _set_seeds(SEED)
        _run(request)
    return asdict(steps.trained)


def _run(request: Request) -> None:
    run = run_module if request.is_module else run_script
    run(request.target, list(request.arguments))


@contextlib.contextmanager
def _in_order() -> Iterator[None]:
    """Let TensorFlow be deterministic: functions that draw random numbers then run one at a time."""
    from tensorflow.python.framework import config

    config.enable_op_determinism()
    try:
        yield
    finally:
        config.disable_op_determinism()


@contextlib.contextmanager
def _files_elsewhere(folder: Path) -> Iterator[None]:
    """Let snapshots, and caches that are not complete, keep their files in a folder: the script's own must not hold a part."""
    import tensorflow as tf

    kind = tf.data.Dataset
    known = {method: getattr(kind, method) for method in KEPT_BY}
    for method, function in known.items():
        setattr(kind, method, _keeping_elsewhere(function, KEPT_BY[method], folder))
    try:
        yield
    finally:
        for method, function in known.items():
            setattr(kind, method, function)


KEPT_BY = {"cache": "filename", "snapshot": "path"}
"""Argument that names the files of a method."""


def _keeping_elsewhere(method: Any, name: str, folder: Path) -> Any:
    signature = inspect.signature(method)

    @functools.wraps(method)
    def keep(*arguments: Any, **options: Any) -> Any:
        given = signature.bind(*arguments, **options)
        file = given.arguments.get(name)
        if isinstance(file, str) and file and not Path(f"{file}.index").exists():
            folder.mkdir(parents=True, exist_ok=True)
            given.arguments[name] = str(folder / hashlib.blake2b(file.encode(), digest_size=8).hexdigest())
        return method(*given.args, **given.kwargs)

    return keep


def _set_seeds(seed: int | None) -> None:
    import tensorflow as tf

    random.seed(seed)
    np.random.seed(seed)
    tf.random.set_seed(seed)  # None leaves each draw to chance, as it is without it


@contextlib.contextmanager
def _instead_of_files(texts: Mapping[str, str]) -> Iterator[None]:
    """Let Python run, and show, other texts than the files hold."""
    loader = importlib.machinery.SourceFileLoader
    read_code = loader.get_code

    def get_code(self: Any, fullname: str) -> Any:
        path = self.get_filename(fullname)
        return compile(texts[path], path, "exec", dont_inherit=True) if path in texts else read_code(self, fullname)

    open_code = io.open_code

    def open_text(path: str) -> Any:
        return io.BytesIO(texts[path].encode()) if path in texts else open_code(path)

    update = linecache.updatecache
    shown = {path: (len(text), None, text.splitlines(keepends=True), path) for path, text in texts.items()}

    def updatecache(filename: str, module_globals: Any = None) -> Any:  # AutoGraph asks for what the disk holds
        if filename not in shown:
            return update(filename, module_globals)
        linecache.cache[filename] = shown[filename]
        return shown[filename][2]

    linecache.cache.update(shown)
    linecache.updatecache = updatecache
    loader.get_code, io.open_code = get_code, open_text  # type: ignore[method-assign]
    try:
        yield
    finally:
        loader.get_code, io.open_code = read_code, open_code  # type: ignore[method-assign]
        linecache.updatecache = update
        for path in texts:
            linecache.cache.pop(path, None)


def read_request(document: dict[str, Any]) -> Request:
    """Return a request from its JSON; its own fields tell it from the others."""
    if "calls" in document:
        return PredictRequest(**document)
    return StepsRequest.from_json(document) if "steps" in document else SampleRequest.from_json(document)


def answer(request: Request, files: Path) -> dict[str, Any]:
    """Return what a request asks for, or why it cannot be had, as JSON."""
    try:
        if isinstance(request, PredictRequest):
            return compare_predicts(request, files)
        if isinstance(request, StepsRequest):
            return train_first_steps(request, files)
        return {"sample": asdict(run_and_read(request))}
    except NotReachedError as error:
        return {"error": str(error), "is_not_reached": True}
    except BaseException as error:  # whatever the script raises
        return {
            "error": str(error) if type(error) is RuntimeError else describe(error),
            "details": traceback.format_exc()[-4000:],
        }
