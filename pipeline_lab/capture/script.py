"""Run somebody's script as Python itself would: as ``__main__``, with its own arguments and search path."""

import builtins
import importlib.machinery
import io
import runpy
import sys
import types
from pathlib import Path
from types import TracebackType

_OWN = (str(Path(__file__).resolve().parent), "<frozen runpy>")


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
    sys.path[0] = str(Path(path).resolve().parent)
    sys.modules["__main__"] = main
    exec(compile(text, absolute, "exec", dont_inherit=True), main.__dict__)  # noqa: S102 (it is what the user asked for)


def run_module(name: str, arguments: list[str]) -> None:
    """Run a module as ``python -m`` would; whatever it raises comes through."""
    sys.argv[:] = [name, *arguments]
    sys.path[0] = str(Path.cwd())
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def hide_own_frames() -> None:
    """Leave the frames of this package's runner out of the traceback of an error that ends the script."""
    before = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        shown = user_frames(traceback)
        before(kind, error.with_traceback(shown), shown)

    sys.excepthook = show


def user_frames(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback from its first frame that is neither ours nor the import machinery's."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(_OWN):
        traceback = traceback.tb_next
    return traceback


def explain(error: BaseException, home: Path, subject: str) -> str:
    """Say in one sentence what ended somebody's code, with file and line where they lie below ``home``."""
    place = name_place(error, home)
    said = str(error).strip().splitlines()
    words = f"{type(error).__name__}: {said[0][:300].rstrip('.')}" if said else type(error).__name__
    return f"{subject} stopped at {place} with {words}." if place else f"{subject} stopped with {words}."


def name_place(error: BaseException, home: Path) -> str:
    """Say where in the user's code an error arose: the innermost line of a file below a folder, or nothing."""
    if isinstance(error, SyntaxError) and error.filename and (name := _below(error.filename, home)):
        return f"{name}, line {error.lineno}"
    place, traceback = "", user_frames(error.__traceback__)
    while traceback is not None:
        if name := _below(traceback.tb_frame.f_code.co_filename, home):
            place = f"{name}, line {traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place


def _below(path: str, home: Path) -> str:
    """Return a path as seen from a folder; empty where it lies elsewhere, or among installed packages."""
    found = Path(path).resolve()
    inside = found.is_relative_to(home) and "site-packages" not in found.parts
    return str(found.relative_to(home)) if inside else ""
