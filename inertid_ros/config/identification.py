"""Options of identification, the same for the command line, the nodes and Python."""

from dataclasses import dataclass

from inertid_ros.core.errors import IdentificationError
from inertid_ros.identification.prior.regularizers import REGULARIZERS
from inertid_ros.identification.solvers.map_problem import SOLVERS
from inertid_ros.regressors.equation_types import KINDS

from .least_squares import ESTIMATORS
from .options import option

MOMENTUM_EQUATIONS = ("momentum", "momentum_change")


@dataclass(frozen=True)
class IdentifyOptions:
    """How to identify. The defaults are meant to be left alone."""

    equations: str = option(
        "force",
        "what is measured: force (joint torques, and on a free base the external wrenches), momentum (of a robot that"
        " floats: what reaction wheels give it), or momentum_change (where joints and wheels do not start at zero"
        " momentum)",
        choices=tuple(KINDS),
    )
    estimator: str = option(
        "consistent",
        "consistent: bodies that can exist, near the prior; the others are classical least squares, as baselines",
        choices=("consistent", *ESTIMATORS),
    )
    regularizer: str = option(
        "entropic",
        "how distance to the prior is measured: entropic; relative, where every parameter is known up to some per cent;"
        " or for comparison pullback, riemannian, euclidean, point_mass (with OSQP) or geodesic",
        choices=REGULARIZERS,
    )
    solver: str = option(
        "interior_point",
        "of convex regularizers: interior_point (built in) or clarabel (through CVXPY)",
        choices=SOLVERS,
    )
    prior_spread: float = option(
        0.0,
        "how far a link may be from its prior: standard deviation of its distance; 0 learns it from the data",
        minimum=0.0,
        maximum=100.0,
    )
    drive_weight: float = option(
        1.0, "weight of the prior that friction, rotor inertia and stiffness are small", minimum=1e-6, maximum=1e3
    )
    outlier_threshold: float = option(
        12.0,
        "samples that miss the fit by more robust standard deviations than this are left out and counted; 0 keeps all",
        minimum=0.0,
        maximum=1e6,
    )
    remove_delay: bool = option(
        False, "estimate by how much effort is reported later than motion, and shift it back; needs a rich motion"
    )

    fit_stribeck_speed: bool = option(
        False, "find the speed of every joint's Stribeck friction; needs motion slow enough to show it"
    )

    def __post_init__(self) -> None:
        estimators = ("consistent", *ESTIMATORS)
        for name, allowed in (("estimator", estimators), ("regularizer", REGULARIZERS), ("solver", SOLVERS)):
            if getattr(self, name) not in allowed:
                raise IdentificationError(f"identify.{name}: '{getattr(self, name)}' is unknown; choose from {allowed}")
        if not (self.prior_spread >= 0 and self.drive_weight > 0):
            raise IdentificationError("identify: prior_spread must not be negative, drive_weight must be above zero")
