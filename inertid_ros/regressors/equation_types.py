"""The kinds of equations that there are, by name."""

from inertid_ros.config.identification import EQUATION_TYPES
from inertid_ros.robot.model import RobotModel

from .equations import Equations
from .force_equations import ForceEquations
from .momentum_equations import MomentumChangeEquations, MomentumEquations

_CLASSES: dict[str, type[Equations]] = dict(
    zip(EQUATION_TYPES, (ForceEquations, MomentumEquations, MomentumChangeEquations), strict=True)
)


def equations_of(source: RobotModel | Equations, kind: str = ForceEquations.kind) -> Equations:
    """Equations as they are, or those of a robot."""
    return source if isinstance(source, Equations) else _CLASSES[kind](source)  # type: ignore[call-arg]
