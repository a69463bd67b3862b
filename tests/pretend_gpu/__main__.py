"""Print the variables that make a shell's processes see pretend GPUs; arguments are the fields of ``PretendGpu``."""

import ast
import contextlib
import shlex
import sys
from pathlib import Path
from typing import Any

from tests.pretend_gpu import PretendGpu, build


def _read(text: str) -> Any:
    """Read ``MatMul=10000,Conv2D=5`` as a mapping, a number as a number, anything else as it is."""
    if "=" in text:
        return {name: float(number) for name, number in (entry.split("=") for entry in text.split(","))}
    with contextlib.suppress(ValueError, SyntaxError):
        return ast.literal_eval(text)
    return text


if __name__ == "__main__":
    cache = Path(__file__).resolve().parents[2] / ".pytest_cache" / "pretend_gpu"
    wanted = {name: _read(text) for name, text in (argument.split("=", 1) for argument in sys.argv[1:])}
    for name, value in PretendGpu(**wanted).environment(build(cache)).items():
        print(f"export {name}={shlex.quote(value)}")
