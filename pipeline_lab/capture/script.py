"""Run somebody's script as Python itself would: as ``__main__``, with its own arguments and search path."""

import builtins
import importlib.machinery
import io
import runpy
import sys
import types
from pathlib import Path
from types import TracebackType

from pipeline_lab.worker.code_places import user_frames


def run_script(path: str, arguments: list[str]) -> None:
    """Run a file; whatever it raises comes through.

    Raises:
        FileNotFoundError: There is no such file.
    """
    absolute = str(Path(path).absolute())
    with io.open_code(absolute) as file:
        text = file.read()
    main = types.ModuleType("__main__")
    main.__dict__.update(
        __file__=absolute,
        __builtins__=builtins,
        __spec__=None,
        __loader__=importlib.machinery.SourceFileLoader("__main__", absolute),
    )
    sys.argv[:] = [path, *arguments]
    _look_first_in(Path(path).resolve().parent)
    sys.modules["__main__"] = main
    exec(compile(text, absolute, "exec", dont_inherit=True), main.__dict__)  # noqa: S102 (it is what the user asked for)


def run_module(name: str, arguments: list[str]) -> None:
    """Run a module as ``python -m`` does, by the function that it calls too; whatever it raises comes through.

    ``runpy.run_module`` takes ``__main__`` away when the module is through, but its threads and exit handlers live on.
    """
    sys.argv[:] = [name, *arguments]
    _look_first_in(Path.cwd())
    sys.modules["__main__"] = types.ModuleType("__main__")
    runpy._run_module_as_main(name)  # type: ignore[attr-defined]  # it has no public name


def _look_first_in(folder: Path) -> None:
    """Search a folder before all others, unless Python was told to search none on its own (``PYTHONSAFEPATH``)."""
    if not sys.flags.safe_path:
        sys.path[0] = str(folder)


def hide_own_frames() -> None:
    """Leave the frames of this package's runner out of the traceback of an error that ends the script."""
    before = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        shown = user_frames(traceback)
        before(kind, error.with_traceback(shown), shown)

    sys.excepthook = show
