"""Ellipsoids of inertia on the robot, before and after, seen from two sides."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from inertid_ros.core.arrays import Array

from .drawing import COLOURS, Panel, svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VIEWS = {"from the side": (0, 2), "from the front": (1, 2)}  # axes of the root frame that are seen
_SIZE = (360.0, 300.0)
_ROOM = 1.08


def ellipsoid_plots(ellipsoids: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Name of the view and SVG, from the part ``ellipsoids`` of report.json."""
    if not any(each[which] for each in ellipsoids for which in ("given", "calibrated")):
        return []
    centre, half = _extent(ellipsoids)
    return [
        (f"seen {view}", _view(ellipsoids, f"Ellipsoids of inertia seen {view}", list(axes), centre, half))
        for view, axes in VIEWS.items()
    ]


def _extent(ellipsoids: Sequence[Mapping[str, Any]]) -> tuple[Array, float]:
    """Centre ``(3,)`` and half the size of what is shown [m]."""
    low, high = [], []
    for each in ellipsoids:
        for ellipsoid in (each["given"], each["calibrated"]):
            if ellipsoid:
                size = np.sqrt(np.sum(np.square(ellipsoid["axes"]), axis=1))
                low.append(np.array(ellipsoid["centre"]) - size)
                high.append(np.array(ellipsoid["centre"]) + size)
    lowest, highest = np.min(low, axis=0), np.max(high, axis=0)
    return 0.5 * (lowest + highest), 0.5 * _ROOM * float((highest - lowest).max())


def _view(ellipsoids: Sequence[Mapping[str, Any]], label: str, axes: list[int], centre: Array, half: float) -> str:
    from matplotlib.lines import Line2D

    def draw(figure: "Figure") -> None:
        wide = half * _SIZE[0] / _SIZE[1]
        horizontal, vertical = centre[axes]
        panel = Panel(
            figure, (0.0, 0.0, 1.0, 1.0), (horizontal - wide, horizontal + wide), (vertical - half, vertical + half)
        )
        for each in ellipsoids:
            origin = np.array(each["origin"])[axes]
            before = ellipsoids[each["parent"]]["origin"] if each["parent"] >= 0 else (0.0, 0.0, 0.0)
            x, y = zip(np.array(before)[axes], origin, strict=True)
            panel.add(Line2D(x, y, color=COLOURS["faint"], linewidth=1.0))
        for each in ellipsoids:
            if each["given"]:
                _outline(panel, each["given"], axes, "given", "--")
            if each["calibrated"]:
                _outline(panel, each["calibrated"], axes, "band", "-", np.array(each["axes_interval"])[:, 1])
                _outline(panel, each["calibrated"], axes, "calibrated", "-")

    return svg(*_SIZE, label, draw)


def _outline(
    panel: Panel, ellipsoid: Mapping[str, Any], axes: list[int], colour: str, style: str, factor: Array | float = 1.0
) -> None:
    """Outline of an ellipsoid seen along an axis of the root frame, its semi-axes scaled."""
    from matplotlib.patches import Ellipse

    semi_axes = (np.array(ellipsoid["axes"]) * factor)[axes]
    values, vectors = np.linalg.eigh(semi_axes @ semi_axes.T)
    width, height = (2 * np.sqrt(np.maximum(values, 0.0))).tolist()
    x, y = np.array(ellipsoid["centre"])[axes].tolist()
    angle = float(np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0])))
    panel.add(
        Ellipse(
            (x, y), width, height, angle=angle, fill=False, edgecolor=COLOURS[colour],
            linewidth=1.1, linestyle=style,
        )
    )  # fmt: skip
