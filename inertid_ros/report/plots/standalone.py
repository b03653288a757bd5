"""Drawings of a page as files of their own."""

import re
from collections.abc import Sequence

from .drawing import variables

_VIEW = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


def standalone(drawings: Sequence[str]) -> str:
    """One SVG file with drawings of :func:`.drawing.svg`, one below the other."""
    parts, height, width = [], 0.0, 0.0
    for drawing in drawings:
        found = _VIEW.search(drawing)
        size = (float(found[1]), float(found[2])) if found else (0.0, 0.0)
        place = f'<svg y="{height:g}" width="{size[0]:g}" height="{size[1]:g}"'
        parts.append(drawing.replace("<svg", place, 1))
        width, height = max(width, size[0]), height + size[1]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-family="sans-serif">'
    return f"{head}<style>{variables()}</style>{''.join(parts)}</svg>\n"
