"""Stands in for a worker: notes the cores that it may use."""

import os
import sys
from pathlib import Path


def main() -> None:
    (Path(sys.argv[1]) / "cores").write_text(str(sorted(os.sched_getaffinity(0))))


if __name__ == "__main__":
    main()
