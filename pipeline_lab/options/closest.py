"""What somebody may have meant who wrote a name that does not exist."""

import difflib
from collections.abc import Iterable


def closest(word: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """Return the known name that looks most like a word; None if none of them is alike enough, 0 to 1."""
    found = difflib.get_close_matches(word, list(known), 1, likeness)
    return found[0] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a sentence that offers the closest name, a blank before it; nothing where no name is close."""
    name = closest(word, known)
    return "" if name is None else f" Did you mean {name}?"
