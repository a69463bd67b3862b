"""The user's module in a job: imported, called, and its result checked. Its errors name file and line.

A target ``package.module:name`` is a function or class. Called with the run's arguments it returns an object with

- ``make_dataset()``: builds the dataset, in batches for the step;
- ``step(batch)``: trains, and returns a loss, ``(loss, accuracy)``, a mapping with these names, or None; or
- ``model``: a compiled Keras model, trained as ``fit`` would; with neither, batches are only taken;
- ``files`` (optional): paths of the files that the dataset reads;
- ``variables`` (optional): what ``step`` changes, so that a calibration can be undone.

The module may have ``PRESETS``: arguments by the preset's name.
"""

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import keras
import tensorflow as tf

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import UserCodeError
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.runs.launch.launchable import no_such_module
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.worker.note.failures import FirstBatch, Report, below, explaining_errors
from pipeline_lab.worker.recipe.wrapping import note_datasets
from pipeline_lab.workloads.module import ModuleWorkload


def import_pipeline(path: Path) -> ModuleType:
    """Import a run's ``pipeline.py`` under a unique name; autograph needs a module with a file."""
    name = f"_pipeline_of_{abs(hash(path)):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def source_to_run(folder: RunFolder) -> Path:
    """Return the source that the job executes: the one with the sample probe, if it exists."""
    return folder.probed_source if folder.probed_source.is_file() else folder.source


@dataclass(frozen=True)
class UserPipeline:
    """The result of the user's function, with the interface of a rendered pipeline.

    Attributes:
        home: The folder below which code is the user's.
        workload: The result.
        first_batch: Limits the wait for the first batch.
        build: Builds the dataset, with the run's ``tf.data.Options``.
        code: The module's file and the beginning of its SHA-256, which identify its version.
    """

    home: Path
    workload: Any
    first_batch: FirstBatch
    build: Callable[[], Any]
    code: str = ""

    def make_dataset(self, _files: list[str], _cache_dir: str) -> Any:
        """Build the dataset.

        Raises:
            UserCodeError: It cannot be built, or is not a dataset.
        """
        self.first_batch.expect(self.maker)
        with explaining_errors(self.home):
            dataset = self.build()
        if not isinstance(dataset, tf.data.Dataset):
            raise UserCodeError(f"{self.maker} returned {_kind(dataset)}; it should return a tf.data.Dataset.")
        return dataset

    @property
    def maker(self) -> str:
        """Name of the function that makes the dataset, with file and line if known."""
        return f"make_dataset{_place_of(self.workload.make_dataset, self.home)}"

    @property
    def stepper(self) -> str:
        """Name of the function that trains on a batch, with file and line if known."""
        return f"step{_place_of(self.workload.step, self.home)}"

    def check_loop(self, training: TrainingOptions) -> None:
        """Refuse a loop that needs a model if the workload has none.

        Raises:
            UserCodeError: It has no model.
        """
        if training.loop != "custom" and getattr(self.workload, "model", None) is None:
            has = self.stepper if getattr(self.workload, "step", None) is not None else "neither model nor step"
            raise UserCodeError(
                f"training.loop = {training.loop} trains a compiled Keras model, but the workload has {has}; give it a model, "
                "or leave training.loop at custom."
            )

    @property
    def files(self) -> list[DataFile]:
        """The files that the workload lists."""
        paths = [Path(path).absolute() for path in getattr(self.workload, "files", ())]
        missing = [path for path in paths if not path.is_file()]
        if missing:
            raise UserCodeError(f"The workload lists the file {missing[0]}, which does not exist.")
        return [DataFile(str(path), None, path.stat().st_size) for path in paths]


def open_user_code(source: Path, options: ModuleWorkload, report: Report) -> UserPipeline:
    """Import the user's module, call its function, and check the result.

    Args:
        source: The run's ``pipeline.py``.
        options: What to import and call.
        report: Writes into the run why it ends when no batch arrives.

    Raises:
        UserCodeError: The sentence says what is wrong and where.
    """
    start = Path(options.folder or Path.cwd()).resolve()
    note_datasets()  # before the module makes any
    if options.folder:
        sys.path.insert(0, options.folder)
    with explaining_errors(start):
        module = _import(options.module, start)
    home = _home(module) or start
    _check_origin(module, start)
    function = _find_function(module, options, home)
    with explaining_errors(home):
        _check_arguments(function, {**_preset(module, options), **options.arguments}, options.function, home)
        rendered: Any = import_pipeline(source)
    _check_workload(rendered.WORKLOAD, f"{options.function}{_place_of(function, home)}")
    return UserPipeline(
        home,
        rendered.WORKLOAD,
        FirstBatch(options.first_batch_s, home, report),
        rendered.make_dataset,
        _version(module, home),
    )


def _import(name: str, start: Path) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise
        raise UserCodeError(no_such_module(name, start)) from None


def _home(module: ModuleType) -> Path | None:
    """Return the folder that holds the module's top package."""
    top = sys.modules[module.__name__.partition(".")[0]]
    file = getattr(top, "__file__", None)
    if file is None:
        return None
    path = Path(file).resolve()
    return path.parents[1] if path.name == "__init__.py" else path.parent


def _version(module: ModuleType, home: Path) -> str:
    path = Path(module.__file__ or "")
    if not path.is_file():
        return module.__name__
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{below(str(path), home) or path.name}, SHA-256 {digest[:16]}"


def _check_origin(module: ModuleType, start: Path) -> None:
    """Refuse a module that another arm of a race imported from another folder."""
    wanted = start.joinpath(*module.__name__.split("."))
    candidates = [path for path in (wanted.with_suffix(".py"), wanted / "__init__.py") if path.is_file()]
    found = getattr(module, "__file__", None)
    if candidates and found and Path(found).resolve() not in candidates:
        raise UserCodeError(
            f"{module.__name__} was imported from {found} already, not from {start}; race arms from one folder."
        )


def _find_function(module: ModuleType, options: ModuleWorkload, home: Path) -> Callable[..., Any]:
    function = getattr(module, options.function, None)
    if not callable(function):
        file = below(module.__file__ or "", home) or module.__name__
        raise UserCodeError(f"{file} has no function or class {options.function}; name one that makes the workload.")
    result: Callable[..., Any] = function
    return result


def _preset(module: ModuleType, options: ModuleWorkload) -> Mapping[str, Any]:
    if options.preset is None:
        return {}
    presets = getattr(module, "PRESETS", {})
    preset = presets.get(options.preset) if isinstance(presets, Mapping) else None
    if not isinstance(preset, Mapping):
        known = ", ".join(map(str, presets)) if isinstance(presets, Mapping) and presets else "none"
        raise UserCodeError(
            f"{options.module} has no preset {options.preset!r} (it has {known}); its PRESETS should hold arguments by "
            "the preset's name."
        )
    return preset


def _check_arguments(function: Callable[..., Any], arguments: Mapping[str, Any], name: str, home: Path) -> None:
    signature = inspect.signature(function)
    try:
        signature.bind(**arguments)
    except TypeError as error:
        taken = ", ".join(signature.parameters) or "nothing"
        place = _place_of(function, home)
        raise UserCodeError(f"{name}{place} cannot be called like this: {error}; it takes {taken}.") from None


def _check_workload(workload: Any, maker: str) -> None:
    if not callable(getattr(workload, "make_dataset", None)):
        raise UserCodeError(
            f"{maker} returned {_kind(workload)}; it should return an object with a function make_dataset(), and with "
            "step(batch) or a compiled Keras model."
        )
    model, step = getattr(workload, "model", None), getattr(workload, "step", None)
    if model is not None and step is not None:
        raise UserCodeError(f"{maker} returned both model and step; leave one of them out.")
    if step is not None and not callable(step):
        raise UserCodeError(f"{maker} returned {_kind(step)} as step; it should be a function that takes a batch.")
    if model is not None and not (isinstance(model, keras.Model) and model.compiled):
        raise UserCodeError(f"{maker} returned {_kind(model)} as model; it should be a compiled Keras model.")


def _kind(value: Any) -> str:
    if isinstance(value, keras.Model):
        return "a Keras model that is not compiled"
    return "None" if value is None else f"an object of type {type(value).__name__}"


def _place_of(function: Any, home: Path) -> str:
    """Return the place of a function or class, as " (file, line n)"; empty if unknown."""
    try:
        code = inspect.unwrap(function)
        file, line = inspect.getsourcefile(code), inspect.getsourcelines(code)[1]
    except (TypeError, OSError):
        return ""
    name = below(file or "", home)
    return f" ({name}, line {line})" if name else ""
