"""Friction over velocity, and the data that show it."""

from typing import TYPE_CHECKING

from inertid_ros.identification.details.friction_curves import FrictionCurve

from .drawing import Panel, range_of, svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIZE = (360.0, 190.0)
_NORMAL_95 = 1.96


def friction_plot(curve: FrictionCurve) -> str:
    """SVG of one joint: samples, the curve of the estimate, and its 95 % band."""

    def draw(figure: "Figure") -> None:
        low, high = curve.friction - _NORMAL_95 * curve.deviation, curve.friction + _NORMAL_95 * curve.deviation
        panel = Panel(figure, (0.13, 0.17, 0.85, 0.72), range_of(curve.speeds), range_of(low, high, curve.torque))
        panel.band(curve.speeds, low, high)
        panel.ticks("velocity [1/s]", "friction and residual [N m or N]")
        panel.points(curve.velocity, curve.torque, "faint")
        panel.line(curve.speeds, curve.friction, "calibrated", 1.4)

    return svg(*_SIZE, f"Friction of {curve.joint} over its velocity, with samples", draw)
