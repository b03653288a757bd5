"""Torque along recordings: measured and predicted, and below it the residual with its expected deviation."""

from typing import TYPE_CHECKING

import numpy as np

from inertid_ros.identification.details.prediction_curves import PredictionCurves

from .drawing import Panel, range_of, svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIZE = (360.0, 200.0)
_SIGMAS = 3.0
_BAND_STEP = 4  # samples: the expected deviation changes slowly
_ROOM = 1.6  # times the band or the usual residual, whichever is larger: single residuals beyond run along the border


def prediction_plots(curves: PredictionCurves, channels: list[str], unit: str) -> list[tuple[str, str]]:
    """Name and SVG of every channel of a recording.

    Parameters
    ----------
    channels : list of str
        ``c`` names.
    unit : str
        Of what is measured.
    """
    return [
        (name, _channel(curves, index, f"{name} along {curves.name}: measured, predicted and residual", unit))
        for index, name in enumerate(channels)
        if np.isfinite(curves.measured[:, index]).any()
    ]


def _channel(curves: PredictionCurves, index: int, label: str, unit: str) -> str:
    time = curves.time
    measured, given, calibrated, deviation = (
        each[:, index] for each in (curves.measured, curves.given, curves.calibrated, curves.deviation)
    )
    residual = measured - calibrated

    def draw(figure: "Figure") -> None:
        span = range_of(time)
        upper = Panel(figure, (0.13, 0.50, 0.85, 0.41), span, range_of(measured, given, calibrated))
        upper.ticks(y_label=f"measured and predicted [{unit}]", x_numbers=False)
        upper.line(time, given, "given", 0.9)
        upper.line(time, measured, "measured", 1.2)
        upper.line(time, calibrated, "calibrated", 0.9)
        usual = float(np.nanquantile(np.abs(residual), 0.99))
        half = _ROOM * max(usual, _SIGMAS * float(deviation.max()))
        lower = Panel(figure, (0.13, 0.155, 0.85, 0.235), span, (-half, half))
        few = slice(None, None, _BAND_STEP)
        lower.band(time[few], -_SIGMAS * deviation[few], _SIGMAS * deviation[few])
        lower.ticks("time [s]", f"residual, ±3σ [{unit}]")
        lower.line(time, residual, "calibrated", 0.7)

    return svg(*_SIZE, label, draw)
