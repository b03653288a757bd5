"""Picture of the README: torque of a real KUKA LWR4, measured, by its URDF and by its calibration.

    PYTHONPATH=benchmarks:test python benchmarks/readme_picture.py
"""

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from tables import ROOT, datasets

import inertid_ros as ir
from inertid_ros.identification.assessment.curves import PredictionCurves, prediction_curves

PICTURE = ROOT / "docs" / "figures" / "lwr4.svg"
GIVEN, CALIBRATED, MEASURED = "#c2660a", "#1d5fa8", "#222222"
JOINT, SHOWN_S = 3, (6.0, 22.0)  # the elbow


def main() -> None:
    """Calibrate by the first two runs, and draw the third."""
    data = datasets()
    if data is None:
        return
    model = ir.load_model(data / "kuka_lwr4" / "kuka_lwr4.urdf")
    runs = [ir.load_recording(data / "kuka_lwr4" / f"run{number}.npz") for number in (1, 2, 3)]
    outcome = ir.calibrate(model, runs[:2], runs[2:])
    mpl.rcParams.update({"font.family": "sans-serif", "font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "lwr4"})
    figure = Figure(figsize=(9.0, 3.3), facecolor="white")
    (curve,) = prediction_curves(outcome.estimate, outcome.held_out)
    draw_errors(figure.add_axes((0.06, 0.15, 0.28, 0.78)), curve)
    draw_torque(figure.add_axes((0.42, 0.15, 0.56, 0.72)), curve)
    figure.savefig(PICTURE, metadata={"Date": None})
    print(f"written to {PICTURE}")


def draw_errors(axes: Axes, curve: PredictionCurves) -> None:
    """Error of every joint, as a share of its torque."""
    size = rms(curve.measured)
    joints = np.arange(len(size))
    for shift, values, colour in ((-0.2, curve.given, GIVEN), (0.2, curve.calibrated, CALIBRATED)):
        axes.barh(joints + shift, 100 * rms(values - curve.measured) / size, 0.38, color=colour)
    axes.set_yticks(joints, [f"joint {joint + 1}" for joint in joints])
    axes.invert_yaxis()
    axes.set_xlabel("torque error on another motion [%]")
    axes.tick_params(left=False)
    axes.spines[["top", "right", "left"]].set_visible(False)


def rms(values: np.ndarray) -> np.ndarray:
    """Root mean square of each column."""
    return np.sqrt(np.nanmean(values**2, axis=0))


def draw_torque(axes: Axes, curve: PredictionCurves) -> None:
    """Torque of a joint, measured and predicted."""
    for values, colour, label in ((curve.measured, MEASURED, "measured"), (curve.given, GIVEN, "URDF as given"),
            (curve.calibrated, CALIBRATED, "calibrated")):
        axes.plot(curve.time, values[:, JOINT], color=colour, lw=1.3, label=label)
    axes.set_xlim(*SHOWN_S)
    axes.set_xlabel("time [s]")
    axes.set_ylabel(f"torque of joint {JOINT + 1} [N m]")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, ncols=3, loc="lower right", bbox_to_anchor=(1.0, 0.98))


if __name__ == "__main__":
    main()
