"""Planned motions against their limits, and what they reveal."""

from typing import TYPE_CHECKING

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.excitation.inspection import Inspection

from .drawing import Panel, range_of, svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIZE, _SPECTRUM_SIZE = (360.0, 330.0), (720.0, 260.0)
_POINTS = 300  # per curve, about what a page resolves
_LEAST = 1e-12  # smallest singular value that is drawn


def limits_plots(inspection: Inspection) -> list[tuple[str, str]]:
    """Name and SVG of every joint: position, velocity, acceleration and prior effort against their limits."""
    plan, limits = inspection.plan, inspection.limits
    time = np.linspace(0.0, plan.duration, _POINTS)
    position, velocity, acceleration = plan.sample(time)
    curves = (
        ("position [rad or m]", time, position, limits.lower, limits.upper),
        ("velocity [1/s]", time, velocity, -limits.velocity, limits.velocity),
        ("acceleration [1/s²]", time, acceleration, -limits.acceleration, limits.acceleration),
        ("effort by the prior [N m or N]", plan.time, inspection.effort, -limits.effort, limits.effort),
    )

    def drawn(joint: int, name: str) -> str:
        def draw(figure: "Figure") -> None:
            for row, (title, at, values, lower, upper) in enumerate(curves):
                bounds, last = np.array([lower[joint], upper[joint]]), row == len(curves) - 1
                box = (0.15, 0.79 - 0.235 * row, 0.83, 0.16)
                panel = Panel(figure, box, (0.0, plan.duration), range_of(values[:, joint], bounds))
                panel.ticks("time [s]" if last else "", title, x_numbers=last)
                for bound in bounds[np.isfinite(bounds)]:
                    panel.line(np.array(panel.x), np.full(2, bound), "limit", 0.9, "--")
                panel.line(at, values[:, joint], "calibrated", 0.9)

        return svg(*_SIZE, f"Motion of {name} against its limits", draw)

    return [(name, drawn(joint, name)) for joint, name in enumerate(plan.joint_names)]


def spectrum_plot(before: Array | None, after: Array) -> str:
    """SVG of the singular values ``(r,)`` of the base regressor without and with the motion.

    Parameters
    ----------
    before : ndarray or None
        Of earlier recordings alone; None where there are none.
    after : ndarray, shape (r,)
        Of these and the motion.
    """
    index: Array = 1.0 + np.arange(len(after), dtype=float)
    shown: list[Array] = [np.maximum(values, _LEAST) for values in (after, before) if values is not None]

    def draw(figure: "Figure") -> None:
        low, high = min(float(each.min()) for each in shown), max(float(each.max()) for each in shown)
        panel = Panel(figure, (0.08, 0.15, 0.9, 0.75), (0.5, len(after) + 0.5), (0.7 * low, 1.4 * high), (False, True))
        panel.ticks("direction in the base parameters", "singular value")
        if before is not None:
            panel.points(index, shown[1], "given", 6.0)
        panel.points(index, shown[0], "calibrated", 4.0)

    return svg(*_SPECTRUM_SIZE, "Singular values of the base regressor, the largest first", draw)
