"""Text for Markdown: user input is shown as typed, never as markup."""

import re
import time

from pipeline_lab.units import keep_together

_MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~$:&=^])")

_SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[A-Z])")

_CODE = re.compile(r"(`[^`]+`)|[^`]+|`")


def escape(text: str) -> str:
    """Return text in which no character means anything to Streamlit's Markdown (directives and maths included).

    Numbers stay with their units.
    """
    return _MARKUP.sub(r"\\\1", keep_together(text.replace("\r", " ").replace("\n", " ")))


def prose(text: str) -> str:
    """Return a sentence as :func:`escape` does, but with what stands between backticks as code."""
    line = text.replace("\r", " ").replace("\n", " ")  # a line break would end the code as well
    return _CODE.sub(lambda found: found[0] if found[1] else escape(found[0]), line)


def split_sentences(text: str) -> tuple[str, str]:
    """Return the first sentence of a text, and the others."""
    first, *others = _SENTENCE_END.split(text, maxsplit=1)
    return first, "".join(others)


def sentence(text: str) -> str:
    """Return text that begins with a capital, as sentences do; a quoted value or a path stays as it is."""
    first = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if first.rstrip(":").isalpha() else text


def format_moment(seconds: float) -> str:
    """Write a moment in local time, such as ``3 Jan 2026, 14:05``; ``seconds`` since the epoch."""
    moment = time.localtime(seconds)
    return f"{moment.tm_mday} {time.strftime('%b %Y, %H:%M', moment)}"
