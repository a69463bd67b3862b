"""A workload of the user's own that is a function which returns a dataset, as ``pipeline_lab.tune`` takes it."""

import importlib
from collections.abc import Callable
from typing import Any


class OwnDataset:
    """Takes batches of what a function returns, as fast as they come; there is no training step."""

    def __init__(self, function: str, **arguments: Any) -> None:
        """Find the function.

        Args:
            function: ``package.module:name``.
            arguments: What it is called with.
        """
        module, _, name = function.partition(":")
        self._function: Callable[..., Any] = getattr(importlib.import_module(module), name)
        self._arguments = arguments

    def make_dataset(self) -> Any:
        """Call the function; the lab checks that a dataset comes back."""
        return self._function(**self._arguments)
