"""Curves of a result: torque along recordings with its residual, friction over velocity, spectra of efforts."""

from typing import TYPE_CHECKING

import numpy as np

from inertid_ros.data.health.effort_spectrum import EffortSpectrum
from inertid_ros.identification.assessment.estimate import NORMAL_95
from inertid_ros.identification.details.friction_curves import FrictionCurve
from inertid_ros.identification.details.prediction_curves import PredictionCurves

from .drawing import Panel, range_of, svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIZE, _LOW = (360.0, 200.0), (360.0, 190.0)
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


def friction_plot(curve: FrictionCurve) -> str:
    """SVG of one joint: samples, the curve of the estimate, and its 95 % band."""

    def draw(figure: "Figure") -> None:
        low, high = curve.friction - NORMAL_95 * curve.deviation, curve.friction + NORMAL_95 * curve.deviation
        panel = Panel(figure, (0.13, 0.17, 0.85, 0.72), range_of(curve.speeds), range_of(low, high, curve.torque))
        panel.band(curve.speeds, low, high)
        panel.ticks("velocity [1/s]", "friction and residual [N m or N]")
        panel.points(curve.velocity, curve.torque, "faint")
        panel.line(curve.speeds, curve.friction, "calibrated", 1.4)

    return svg(*_LOW, f"Friction of {curve.joint} over its velocity, with samples", draw)


def effort_spectrum_plot(spectrum: EffortSpectrum) -> str:
    """SVG with a line per joint, of which the strongest stands out, and the cutoff."""
    positive = np.where(spectrum.density > 0, spectrum.density, np.nan)

    def draw(figure: "Figure") -> None:
        x = float(spectrum.frequency[0]), float(spectrum.frequency[-1])
        y = float(np.nanmin(positive)), float(np.nanmax(positive))
        panel = Panel(figure, (0.15, 0.17, 0.83, 0.72), x, (max(y[0], 1e-7 * y[1]), y[1]), (True, True))
        panel.ticks("frequency [Hz]", "effort density [N m/√Hz]")
        strongest = int(np.nanargmax(np.nansum(positive, axis=0)))
        for joint, density in enumerate(positive.T):
            if np.isfinite(density).any():
                panel.line(spectrum.frequency, density, "calibrated" if joint == strongest else "faint", 0.8)
        if x[0] < spectrum.cutoff_hz < x[1]:
            panel.line(np.full(2, spectrum.cutoff_hz), np.array(panel.y), "limit", 1.2, "--")

    return svg(*_LOW, f"Spectrum of the efforts of {spectrum.name}, cutoff at {spectrum.cutoff_hz:.3g} Hz", draw)
