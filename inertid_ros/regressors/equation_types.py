"""The kinds of equations that there are, by name."""

from inertid_ros.robot.model import RobotModel

from .equations import Equations
from .force_equations import ForceEquations
from .momentum_equations import MomentumChangeEquations, MomentumEquations

KINDS: dict[str, type[Equations]] = {
    kind.kind: kind for kind in (ForceEquations, MomentumEquations, MomentumChangeEquations)
}


def equations_of(source: RobotModel | Equations, kind: str = ForceEquations.kind) -> Equations:
    """Equations as they are, or those of a robot."""
    return source if isinstance(source, Equations) else KINDS[kind](source)  # type: ignore[call-arg]
