"""Print the variables that make a shell's processes see a pretend GPU; arguments are the fields of ``PretendGpu``."""

import shlex
import sys
from pathlib import Path

from tests.pretend_gpu import PretendGpu, build

if __name__ == "__main__":
    cache = Path(__file__).resolve().parents[2] / ".pytest_cache" / "pretend_gpu"
    wanted = dict(argument.split("=", 1) for argument in sys.argv[1:])
    settings = {f"PRETEND_GPU_{name.upper()}": value for name, value in wanted.items()}
    for name, value in (PretendGpu().environment(build(cache)) | settings).items():
        print(f"export {name}={shlex.quote(value)}")
