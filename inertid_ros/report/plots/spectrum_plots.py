"""Spectrum of recorded efforts, with the cutoff of the low-pass."""

from typing import TYPE_CHECKING

import numpy as np

from inertid_ros.data.health.effort_spectrum import EffortSpectrum

from .drawing import Panel, svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIZE = (360.0, 190.0)


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

    return svg(*_SIZE, f"Spectrum of the efforts of {spectrum.name}, cutoff at {spectrum.cutoff_hz:.3g} Hz", draw)
