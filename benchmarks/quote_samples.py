"""Bring the lines of output that pages quote up to date, after the samples were recorded: ``python -m benchmarks.quote_samples``.

A quoted line is found again by its words: numbers, their units and what stands in parentheses may differ. Lines whose words
have changed are listed, to be edited by hand, and so are figures in running text, which nothing but a reader can check.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
SAMPLES = ("sample-baseline", "sample-optimised")
COMMANDS = (
    ("analyze", SAMPLES[0]),
    ("analyze", SAMPLES[1]),
    ("compare", *SAMPLES, "--fail-if-slower", "5%"),
)
_BLOCK = re.compile(r"(?<=^```text\n)(.*?)(?=^```)", re.MULTILINE | re.DOTALL)
_FIGURE = re.compile(r"[−±+-]?\d[\d,.]*(?: (?:ms|µs|ns|s|min|kB|MB|GB)\b)?")
_ANY_FIGURE = r"[−±+-]?\d[\d,.]*(?: (?:ms|µs|ns|s|min|kB|MB|GB)\b)?"


def main() -> int:
    printed = _print()
    left = [f"{page.name}: {line}" for page in PAGES for line in _renew(page, printed)]
    print(*(f"Edit by hand: {line}" for line in left), sep="\n")
    return 1 if left else 0


def _print() -> str:
    """Return all that the commands print, with single spaces."""
    with tempfile.TemporaryDirectory() as store:
        ended = [
            subprocess.run(
                [sys.executable, "-m", "pipeline_lab", *command, "--store", store],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
            )
            for command in COMMANDS
        ]
    return " ".join(" ".join(one.stdout + one.stderr for one in ended).split())


def _renew(page: Path, printed: str) -> list[str]:
    """Rewrite the quoted lines of a page, and return those that were not found again."""
    left: list[str] = []

    def renew(block: re.Match[str]) -> str:
        return "".join(_renew_line(line, printed, left) for line in block[0].splitlines(keepends=True))

    text = page.read_text(encoding="utf-8")
    page.write_text(_BLOCK.sub(renew, text), encoding="utf-8")
    return left


def _renew_line(line: str, printed: str, left: list[str]) -> str:
    words = " ".join(line.split())
    if not words or words.startswith(("$", "…")) or words in printed:
        return line
    pattern = r"\s+".join(
        _ANY_FIGURE.join(map(re.escape, _FIGURE.split(part))) for part in re.split(r"\s{2,}", line.strip())
    )
    found = re.search(pattern.replace(r"\ ", r"\s"), printed)
    if found is None:
        left.append(words)
        return line
    figures = iter(_FIGURE.findall(found[0]))
    return _FIGURE.sub(lambda _: next(figures), line)


if __name__ == "__main__":
    sys.exit(main())
