"""Small SVG plots for pages: drawn by Matplotlib, in the colours of the page, scaled to its width.

Axes are drawn without Matplotlib's own axis code, which would take four fifths of the time of a plot: a page of a
humanoid has a hundred plots. Colours are replaced by variables of the page's style sheet, so that a drawing fits light
and dark pages. Identifiers are removed, as they would repeat within a page.
"""

import io
import re
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from inertid_ros.core.arrays import Array

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure
    from matplotlib.typing import CapStyleType

# Variable of the style sheet, mapped to its placeholder in Matplotlib and to its colour without a style sheet.
_COLOURS = {"text": ("#010101", "#222222"), "faint": ("#020202", "#767676"), "grid": ("#030303", "#dddddd"),
    "measured": ("#040404", "#222222"), "given": ("#050505", "#b45309"), "calibrated": ("#060606", "#1d5fa8"),
    "band": ("#070707", "#a9c7e8"), "limit": ("#080808", "#b32424")}
COLOURS = {name: drawn for name, (drawn, _) in _COLOURS.items()}
_STYLE = {"svg.fonttype": "none", "svg.hashsalt": "inertid", "path.simplify": True, "path.simplify_threshold": 0.4}
_DPI = 72.0  # points per inch
_FONT_PT = 10.0
_ZERO = 1e-12  # in SI units; smaller numbers are printed as zero
_VIEW = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


class Panel:
    """Pair of axes of a plot, with ticks at round numbers.

    Parameters
    ----------
    box : left, bottom, width, height as shares of the figure.
    x, y : range of the axes.
    log : whether x and y are logarithmic.
    """

    def __init__(self, figure: "Figure", box: tuple[float, float, float, float], x: tuple[float, float],
            y: tuple[float, float], log: tuple[bool, bool] = (False, False)) -> None:
        self.axes = figure.add_axes(box)
        self.axes.axis("off")
        self.x, self.y, self._log = _proper(x, log[0]), _proper(y, log[1]), log
        scales = {f"{name}scale": "log" for name, is_log in zip("xy", log, strict=True) if is_log}
        self.axes.set(**scales, xlim=self.x, ylim=self.y)

    def ticks(self, x_label: str = "", y_label: str = "", x_numbers: bool = True) -> None:
        """Draw grid lines, their numbers, and axis labels."""
        across, along = (_round_numbers(limits, log) for limits, log in zip((self.x, self.y), self._log, strict=True))
        lines = [((self.x[0], value), (self.x[1], value)) for value in along]
        lines += [((value, self.y[0]), (value, self.y[1])) for value in across]
        if lines:
            self._segments(np.reshape(lines, (-1, 2)), "grid", 0.6, "butt")
        for value in along:
            self._text(number(value), (self.x[0], value), (-3, 0), ("right", "center"))
        for value in across if x_numbers else ():
            self._text(number(value), (value, self.y[0]), (0, -3), ("center", "top"))
        self._text(y_label, (0.0, 1.0), (0, 3), ("left", "bottom"), "axes fraction")
        self._text(x_label, (1.0, 0.0), (0, -16), ("right", "top"), "axes fraction")

    def line(self, x: Array, y: Array, colour: str, width: float = 1.0, style: str = "-") -> None:
        """Draw a curve; parts outside the range run along the border."""
        from matplotlib.lines import Line2D

        self.add(Line2D(x, np.clip(y, *self.y), color=COLOURS[colour], linewidth=width, linestyle=style))

    def band(self, x: Array, low: Array, high: Array) -> None:
        """Fill the area between two curves."""
        from matplotlib.patches import Polygon

        corners = np.concatenate([x, x[::-1]]), np.clip(np.concatenate([high, low[::-1]]), *self.y)
        self.add(Polygon(np.column_stack(corners), facecolor=COLOURS["band"], linewidth=0))

    def points(self, x: Array, y: Array, colour: str, size: float = 2.0) -> None:
        """Draw dots as one path; dots outside the range are left out."""
        inside = np.isfinite(x) & np.isfinite(y)
        inside &= (x >= self.x[0]) & (x <= self.x[1]) & (y >= self.y[0]) & (y <= self.y[1])
        if inside.any():
            self._segments(np.repeat(np.column_stack([x[inside], y[inside]]), 2, axis=0), colour, size, "round")

    def add(self, artist: "Artist") -> None:
        """Draw an artist in the coordinates of the axes, without the slow update of their range."""
        artist.set_clip_on(False)
        self.axes.add_artist(artist)

    def _segments(self, corners: Array, colour: str, width: float, cap: "CapStyleType") -> None:
        """Draw ``k`` line segments as one path; ``corners`` ``(2 k, 2)`` has start and end of each segment in turn."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        codes = np.tile([Path.MOVETO, Path.LINETO], len(corners) // 2)
        path = Path(corners, codes)
        path.should_simplify = False  # simplification would join separate dots
        self.add(PathPatch(path, fill=False, edgecolor=COLOURS[colour], linewidth=width, capstyle=cap))

    def _text(self, text: str, place: tuple[float, float], offset: tuple[float, float], sides: tuple[str, str],
            of: str = "data") -> None:
        """Write text next to a place: a number at a data point, or a label at a place in shares of the axes."""
        if text:
            self.axes.annotate(text, place, offset, of, "offset points", ha=sides[0], va=sides[1], fontsize=_FONT_PT,
                color=COLOURS["text" if of == "data" else "faint"])


def svg(width: float, height: float, label: str, draw: Callable[["Figure"], Any]) -> str:
    """SVG of a drawing that scales with the page; the size is in points, and text has 10 points.

    The label describes the drawing for screen readers.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI, facecolor="none")
        draw(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = buffer.getvalue()
    body = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    head = f'<svg viewBox="0 0 {width:g} {height:g}" font-size="{_FONT_PT:g}" role="img" aria-label="{escape(label)}">'
    return f"{head}{_small(body)}</svg>"


def range_of(*values: Array) -> tuple[float, float]:
    """Limits of an axis: extremes of all finite values with a margin of 4 %, or (-1, 1) without any."""
    finite = np.concatenate([np.ravel(array) for array in values])
    finite = finite[np.isfinite(finite)]
    if not len(finite):
        return -1.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    room = 0.04 * (high - low)
    return low - room, high + room


def _small(body: str) -> str:
    """Shorten a drawing: remove identifiers and metadata, round to tenths of points, and use the page's colours."""
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"<defs>.*?</defs>|<!--.*?-->", "", body, flags=re.DOTALL)
    body = re.sub(r' id="[^"]*"| xmlns:\w+="[^"]*"', "", body)
    body = re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\d\.\d)\d+", r"\1", tag[0]), body)
    body = re.sub(r"(font|font-size|font-family): [^;\"]*;? ?", "", body)  # one size, and the font of the page
    body = re.sub(r' transform="rotate\(-?0 [^"]*"', "", body)
    body = re.sub(r"\s*\n\s*", " ", body)
    body = re.sub(r"</?g>", "", body)
    for name, (drawn, _) in _COLOURS.items():
        body = body.replace(drawn, f"var(--{name})")
    body = body.replace("; stroke-linejoin: miter", "").replace("; stroke-linecap: square", "")
    return re.sub(r"(?<=[;:>]) | (?=<)", "", body).strip()


def _proper(limits: tuple[float, float], log: bool) -> tuple[float, float]:
    """Make a range non-empty, and positive on a logarithmic axis."""
    low, high = limits
    if log:
        low = max(low, 1e-12)
        return low, max(high, 10 * low)
    room = 1e-9 * max(abs(low), abs(high), 1e-300)
    return (low, high) if high - low > room else (low - 1.0, high + 1.0)


def _round_numbers(limits: tuple[float, float], log: bool) -> list[float]:
    from matplotlib.ticker import LogLocator, MaxNLocator

    locator = LogLocator(numticks=6) if log else MaxNLocator(4, steps=[1, 2, 5, 10])
    return [float(value) for value in locator.tick_values(*limits) if limits[0] <= value <= limits[1]]


def number(value: float | None, digits: int = 4) -> str:
    """Format a number with ``digits`` significant digits for pages and plots."""
    if value is None or isinstance(value, str) or not np.isfinite(value):
        return "–"
    return f"{0.0 if abs(value) < _ZERO else value:.{digits}g}".replace("-", "−")


class Drawing(str):
    """Content of an SVG file, displayed by notebooks."""

    def _repr_svg_(self) -> str:
        return str(self)


def standalone(drawings: Sequence[str]) -> Drawing:
    """Stack drawings of :func:`svg` in one SVG file, with the colours of a light page."""
    parts, height, width = [], 0.0, 0.0
    for drawing in drawings:
        view = _VIEW.search(drawing)
        size = (float(view[1]), float(view[2])) if view else (0.0, 0.0)
        place = f'<svg y="{height:g}" width="{size[0]:g}" height="{size[1]:g}"'
        parts.append(drawing.replace("<svg", place, 1))
        width, height = max(width, size[0]), height + size[1]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-family="sans-serif">'
    colours = ";".join(f"--{name}:{colour}" for name, (_, colour) in _COLOURS.items())
    return Drawing(f"{head}<style>:root{{{colours}}}</style>{''.join(parts)}</svg>\n")
