"""Plots of a planned motion as SVG text, drawn by Matplotlib where it is installed."""

import io
from typing import Any

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.excitation.inspection import Inspection

_POINTS = 800  # per curve, about what a screen resolves
_LEAST = 1e-12  # smallest singular value that is drawn
_STYLE = {"font.size": 8, "svg.fonttype": "none", "svg.hashsalt": "inertid", "axes.grid": True}


def limits_plot(inspection: Inspection) -> str:
    """SVG with a row per joint: position, velocity, acceleration, effort against limits; empty without Matplotlib."""
    plan, limits = inspection.plan, inspection.limits
    time = np.linspace(0.0, plan.duration, _POINTS)
    motion = (*plan.sample(time), None)
    bounds = (
        ("position [rad or m]", limits.lower, limits.upper),
        ("velocity [1/s]", -limits.velocity, limits.velocity),
        ("acceleration [1/s²]", -limits.acceleration, limits.acceleration),
        ("prior effort [N m or N]", -limits.effort, limits.effort),
    )

    def draw(figure: Any) -> None:
        figure.set_size_inches(11, 1.3 * len(plan.joint_names) + 0.5)
        axes = figure.subplots(len(plan.joint_names), len(bounds), sharex=True, squeeze=False)
        for column, ((title, lower, upper), values) in enumerate(zip(bounds, motion, strict=True)):
            axes[0, column].set_title(title)
            axes[-1, column].set_xlabel("time [s]")
            for joint, name in enumerate(plan.joint_names):
                axis = axes[joint, column]
                if values is None:
                    axis.plot(plan.time, inspection.effort[:, joint], color="tab:blue", linewidth=0.9)
                else:
                    axis.plot(time, values[:, joint], color="tab:blue", linewidth=0.9)
                for bound in (lower[joint], upper[joint]):
                    axis.axhline(bound, color="tab:red", linewidth=0.9, linestyle="--")
                if column == 0:
                    axis.set_ylabel(name)

    return _svg(draw)


def spectrum_plot(before: Array | None, after: Array) -> str:
    """SVG of the singular values ``(r,)`` of the base regressor without and with the motion; empty without Matplotlib.

    Parameters
    ----------
    before : ndarray or None
        Of earlier recordings alone; None where there are none.
    after : ndarray, shape (r,)
        Of these and the motion.
    """

    index = 1 + np.arange(len(after))

    def draw(figure: Any) -> None:
        figure.set_size_inches(7, 3)
        axis = figure.subplots()
        if before is not None:
            axis.semilogy(index, np.maximum(before, _LEAST), "o", color="tab:orange", label="before")
        axis.semilogy(index, np.maximum(after, _LEAST), ".", color="tab:blue", label="with this motion")
        axis.set_xlabel("base parameter")
        axis.set_ylabel("singular value")
        axis.legend()

    return _svg(draw)


def _svg(draw: Any) -> str:
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    with rc_context(_STYLE):
        figure = Figure(layout="constrained")
        draw(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
