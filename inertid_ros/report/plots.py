"""Plots as SVG text, drawn by Matplotlib where it is installed; empty elsewhere."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.excitation.inspection import Inspection
from inertid_ros.regressors.equations import Equations

_POINTS, _MOTION_POINTS = 500, 800  # per curve, about what a screen resolves
_LEAST = 1e-12  # smallest singular value that is drawn
_STYLE = {"font.size": 8, "svg.fonttype": "none", "svg.hashsalt": "inertid", "axes.grid": True}


def measurement_plot(equations: Equations, samples: Samples, calibrated: Array, prior: Array) -> str:
    """SVG with a row per channel: torque, or what else is measured, and predicted, and the residuals.

    Parameters
    ----------
    equations : Equations
        Channels and what they measure.
    samples : Samples
        Measured side.
    calibrated, prior : ndarray, shape (N, c)
        Predicted.

    Returns
    -------
    str
        Empty without Matplotlib.
    """
    names, (quantity, unit) = equations.channels, equations.quantity
    rows = np.flatnonzero(samples.usable)
    rows = rows[:: max(1, len(rows) // _POINTS)]
    time, measured = samples.time[rows], samples.tau[rows]

    def draw(figure: Any) -> None:
        axes = _rows(figure, len(names), 2, (10, 1.5 * len(names) + 1.0), below=0.75)
        for joint, (name, (left, right)) in enumerate(zip(names, axes, strict=True)):
            left.plot(time, measured[:, joint], color="black", linewidth=1.0, label="measured")
            left.plot(time, prior[rows, joint], color="tab:orange", linewidth=0.8, label="URDF as given")
            left.plot(time, calibrated[rows, joint], color="tab:blue", linewidth=0.8, label="calibrated")
            right.plot(time, prior[rows, joint] - measured[:, joint], color="tab:orange", linewidth=0.8)
            right.plot(time, calibrated[rows, joint] - measured[:, joint], color="tab:blue", linewidth=0.8)
            left.set_ylabel(name)
        axes[0, 0].set_title(f"{quantity} [{unit}]")
        axes[0, 1].set_title("predicted minus measured")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="lower center", ncols=3)
        for axis in axes[-1]:
            axis.set_xlabel("time [s]")

    return _svg(draw)


def limits_plot(inspection: Inspection) -> str:
    """SVG with a row per joint: position, velocity, acceleration, effort against limits; empty without Matplotlib."""
    plan, limits = inspection.plan, inspection.limits
    time = np.linspace(0.0, plan.duration, _MOTION_POINTS)
    motion = (*plan.sample(time), None)
    bounds = (
        ("position [rad or m]", limits.lower, limits.upper),
        ("velocity [1/s]", -limits.velocity, limits.velocity),
        ("acceleration [1/s²]", -limits.acceleration, limits.acceleration),
        ("prior effort [N m or N]", -limits.effort, limits.effort),
    )

    def draw(figure: Any) -> None:
        count = len(plan.joint_names)
        axes = _rows(figure, count, len(bounds), (11, 1.3 * count + 0.8), below=0.45)
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
        axis = _rows(figure, 1, 1, (7, 3), below=0.45)[0, 0]
        if before is not None:
            axis.semilogy(index, np.maximum(before, _LEAST), "o", color="tab:orange", label="before")
        axis.semilogy(index, np.maximum(after, _LEAST), ".", color="tab:blue", label="with this motion")
        axis.set_xlabel("base parameter")
        axis.set_ylabel("singular value")
        axis.legend()

    return _svg(draw)


def _rows(figure: Any, rows: int, columns: int, size: tuple[float, float], below: float) -> Any:
    """Axes ``(rows, columns)`` on a figure of a size [inch], with room for labels, and for a legend below them.

    Matplotlib's own layouts find the same margins by drawing everything twice.
    """
    width, height = size
    figure.set_size_inches(width, height)
    margins = {"left": 0.7 / width, "right": 1 - 0.1 / width, "bottom": below / height, "top": 1 - 0.3 / height}
    spaces = {"wspace": 0.55 * columns / (width - 0.8), "hspace": 0.15}
    return figure.subplots(rows, columns, sharex=True, squeeze=False, gridspec_kw=margins | spaces)


def _svg(draw: Callable[[Any], None]) -> str:
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    with rc_context(_STYLE):
        figure = Figure()
        draw(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
