"""``python -m tests.golden``: compare what users get with the golden files, or write them again.

python -m tests.golden --check [--only help,sources]
python -m tests.golden --write [--only …]
python -m tests.golden --keep FOLDER        whole texts, for a diff of what a golden file holds only as a digest
"""

import argparse
import difflib
import sys
from pathlib import Path

from tests.golden import parts

FILES = Path(__file__).with_name("files")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true", help="compare, and show what differs")
    what.add_argument("--write", action="store_true", help="write the golden files again")
    what.add_argument("--keep", type=Path, metavar="FOLDER", help="write whole texts there, nothing shortened")
    parser.add_argument("--only", default="", help=f"comma-separated: {', '.join(parts.PARTS)}")
    arguments = parser.parse_args()
    names = arguments.only.split(",") if arguments.only else list(parts.PARTS)
    if unknown := set(names) - set(parts.PARTS):
        parser.error(f"--only: there is no {', '.join(sorted(unknown))}; there are {', '.join(parts.PARTS)}")
    wrong = 0
    for name in names:
        made = parts.make(name)
        if arguments.keep:
            parts.write(made, arguments.keep / name)
            continue
        short = {file: parts.shorten(text) for file, text in made.items()}
        wrong += _compare(name, short)
        if arguments.write:
            parts.write(short, FILES / name)
    return 0 if arguments.write else min(wrong, 1)


def _compare(name: str, made: dict[str, str]) -> int:
    stored = parts.read(FILES / name)
    differing = sorted(file for file in made.keys() | stored.keys() if made.get(file) != stored.get(file))
    for file in differing:
        lines = difflib.unified_diff(
            stored.get(file, "").splitlines(),
            made.get(file, "").splitlines(),
            f"{name}/{file}",
            "now",
            lineterm="",
            n=1,
        )
        sys.stdout.write("\n".join(list(lines)[:60]) + "\n")
    sys.stdout.write(f"{name}: {len(made)} files, {len(differing)} differ\n")
    return len(differing)


if __name__ == "__main__":
    sys.exit(main())
