"""Make what users typed fit to print: no control characters, no broken Unicode, no text that turns its neighbors."""

import re
import unicodedata

MAX_NAME = 120
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


def plain(text: str) -> str:
    """Return text with line feeds for line breaks, whose invisible or direction-changing characters are spelt out.

    Letters of right-to-left scripts stay as they are; only the characters that force a direction on others go.
    """
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNSAFE.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", unified)


def plain_json(document: str) -> str:
    """Return a JSON document in which such characters stand as escapes."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", document)


def plain_line(text: str, longest: int = MAX_NAME) -> str:
    """Return text on one line, cut in the middle if it is longer than ``longest`` characters."""
    line = " ".join(plain(text).split())
    if len(line) <= longest:
        return line
    head = (longest - 1) * 2 // 3
    return f"{line[:head].rstrip()}…{line[len(line) - (longest - 1 - head) :].lstrip()}"


def slug(text: str) -> str:
    """Return a file name's worth of a text: lower-case letters, digits and hyphens, at most 60."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", ascii_text.lower()).strip("-")[:60].strip("-") or "report"
