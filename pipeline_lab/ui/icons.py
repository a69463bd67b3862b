"""Drawn signs for buttons: as pictures they carry a name of their own for those who cannot see them."""

import base64

_GREY = "#76808d"
"""Stands out from the light and from the dark background."""
_PATHS = {"up": "M8 13V3M3.5 7.5 8 3l4.5 4.5", "down": "M8 3v10M3.5 8.5 8 13l4.5-4.5", "remove": "M4 4l8 8M12 4l-8 8"}


def labelled(sign: str, name: str) -> str:
    """Return a button's label that shows a sign (``up``, ``down``, ``remove``) and is read out as ``name``."""
    drawing = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16">'
        f'<path d="{_PATHS[sign]}" fill="none" stroke="{_GREY}" stroke-width="2"/></svg>'
    )
    return f"![{name}](data:image/svg+xml;base64,{base64.b64encode(drawing.encode()).decode()})"
