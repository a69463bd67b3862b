"""Calls a function the moment a package has been imported, before the code that imports it goes on.

The import itself is TensorFlow's own: the package's loader is asked once, then it is as if nobody had.
"""

import contextlib
import itertools
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def after_import(package: str, call: Callable[[], None]) -> Callable[[], None]:
    """Call a function when a package has been imported; now, if it has been already. Return what calls that off.

    Args:
        package: Name of a package without dots.
        call: Runs in the importing thread; its errors are dropped.
    """
    if is_imported(package):
        _run(call)
        return lambda: None
    finder = _Finder(package, call)
    sys.meta_path.insert(0, finder)
    return finder.leave


def is_imported(package: str) -> bool:
    """Say whether a package has been imported, to the end."""
    spec = getattr(sys.modules.get(package), "__spec__", None)
    return spec is not None and not getattr(spec, "_initializing", False)


def _run(call: Callable[[], None]) -> None:
    with contextlib.suppress(Exception):  # must not affect the script
        call()


class _Finder(MetaPathFinder):
    """Finds one package as the finders after it do, and has its loader call back."""

    def __init__(self, package: str, call: Callable[[], None]) -> None:
        self._package, self._call = package, call

    def leave(self) -> None:
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._package:
            return None
        for finder in list(itertools.dropwhile(lambda each: each is not self, sys.meta_path))[1:]:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if find is None else find(fullname, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, self, self._call)
                return spec
        return None


class _Loader(Loader):
    def __init__(self, inner: Loader, finder: _Finder, call: Callable[[], None]) -> None:
        self._inner, self._finder, self._call = inner, finder, call

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._inner
        module.__loader__ = self._inner
        self._inner.exec_module(module)
        self._finder.leave()
        _run(self._call)
