"""Plots of a result as SVG text, drawn by Matplotlib where it is installed."""

import io
from collections.abc import Sequence

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples

_POINTS = 500  # per curve, about what a screen resolves


def torque_plot(names: Sequence[str], samples: Samples, calibrated: Array, prior: Array) -> str:
    """SVG with a row per joint: torque measured and predicted, and the residuals; empty without Matplotlib.

    Parameters
    ----------
    names : sequence of str
        Channels.
    samples : Samples
        Measured torque.
    calibrated, prior : ndarray, shape (N, n)
        Predicted torque.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    rows = np.flatnonzero(samples.usable)
    rows = rows[:: max(1, len(rows) // _POINTS)]
    time, measured = samples.time[rows], samples.tau[rows]
    with rc_context({"font.size": 8, "svg.fonttype": "none", "svg.hashsalt": "inertid", "axes.grid": True}):
        figure = Figure(figsize=(10, 1.5 * len(names) + 0.6), layout="constrained")
        axes = figure.subplots(len(names), 2, sharex=True, squeeze=False)
        for joint, (name, (left, right)) in enumerate(zip(names, axes, strict=True)):
            left.plot(time, measured[:, joint], color="black", linewidth=1.0, label="measured")
            left.plot(time, prior[rows, joint], color="tab:orange", linewidth=0.8, label="URDF as given")
            left.plot(time, calibrated[rows, joint], color="tab:blue", linewidth=0.8, label="calibrated")
            right.plot(time, prior[rows, joint] - measured[:, joint], color="tab:orange", linewidth=0.8)
            right.plot(time, calibrated[rows, joint] - measured[:, joint], color="tab:blue", linewidth=0.8)
            left.set_ylabel(name)
        axes[0, 0].set_title("torque [N m] or force [N]")
        axes[0, 1].set_title("predicted minus measured")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        for axis in axes[-1]:
            axis.set_xlabel("time [s]")
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
