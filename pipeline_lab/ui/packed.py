"""Options as one word that a link can carry, so that the link reproduces a form as somebody left it."""

import base64
import binascii
import json
import zlib
from typing import Any

from pipeline_lab.errors import OptionsError

MAX_BYTES = 200_000
"""Options are a few thousand bytes; a link that unfolds to more is refused unread."""
DAMAGED = "The link's options cannot be read; copy the whole link again, or start from a preset."


def pack(document: dict[str, Any]) -> str:
    """Return a document as letters, digits, ``-`` and ``_``."""
    text = json.dumps(document, separators=(",", ":"), sort_keys=True).encode()
    return base64.urlsafe_b64encode(zlib.compress(text, 9)).decode().rstrip("=")


def unpack(word: str) -> dict[str, Any]:
    """Return the document that :func:`pack` was given.

    Raises:
        OptionsError: The word is damaged, or holds something else.
    """
    try:
        packed = base64.b64decode(word + "=" * (-len(word) % 4), altchars=b"-_", validate=True)
        unfolding = zlib.decompressobj()
        text = unfolding.decompress(packed, MAX_BYTES)
        if not unfolding.eof:
            raise OptionsError(DAMAGED)
        document = json.loads(text)
    except (binascii.Error, zlib.error, ValueError, RecursionError):
        raise OptionsError(DAMAGED) from None
    if not isinstance(document, dict):
        raise OptionsError(DAMAGED)
    return document
