"""Options of identification, the same for the command line, the nodes and Python."""

from collections.abc import Mapping

import attrs

from inertid_ros.config.schema.option_fields import named, option

from .least_squares import ESTIMATORS
from .robot import DRIVE_TERMS

MOMENTUM_EQUATIONS = ("momentum", "momentum_change")
EQUATION_TYPES = ("force", *MOMENTUM_EQUATIONS)
REGULARIZERS = ("entropic", "pullback", "riemannian", "euclidean", "relative", "point_mass", "geodesic")
SOLVERS = ("interior_point", "clarabel")


@attrs.frozen
class IdentifyOptions:
    """How to identify. The defaults are meant to be left alone."""

    equations: str = option(
        "force",
        "what is measured: force (joint torques, and on a free base the external wrenches), momentum (of a robot that"
        " floats: what reaction wheels give it), or momentum_change (where joints and wheels do not start at zero"
        " momentum)",
        choices=EQUATION_TYPES,
    )
    estimator: str = option(
        "consistent",
        "consistent: bodies that can exist, near the prior; the others are classical least squares, as baselines, of"
        " which wls_c and wls_rc scale every column by the parameter's value in the prior, but by no less than a tenth"
        " of its natural size, so that a zero of the prior can be fitted, too",
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
        True,
        "estimate by how much effort is reported later than motion (fixed base), and shift it back where it is"
        " significant and held-out blocks agree",
    )
    prior: str = option(
        "",
        "result directory to continue: the fit is that of its recordings and the new ones together; empty starts from"
        " the URDF",
    )
    spread: Mapping[str, float] = named(
        float,
        "prior spread of a single link, such as one with a gripper that the URDF does not know (10 is anything); with"
        " prior, of a link that is not the one of that result any more; all stands for every other link",
        "spread_link_names", minimum=1e-3, maximum=100.0,
    )
    changing_terms: tuple[str, ...] = option(
        ("viscous", "coulomb", "offset", "stribeck"),
        "with prior, drive terms of which the new recordings have values of their own, as friction has every day",
        choices=DRIVE_TERMS,
    )
    drive_gains: bool = option(
        False,
        "find the gain of every joint's drive, by which its efforts are multiplied; needs recordings with and without a"
        " known load (robot.loads), which alone fixes the scale",
    )
    fit_stribeck_speed: bool = option(
        False, "find the speed of every joint's Stribeck friction; needs motion slow enough to show it"
    )


@attrs.frozen
class RoundsOptions:
    """When rounds of excitation and identification end."""

    rounds: int = option(
        1, "motions at most: each but the first asks for what the data so far left open", minimum=1, maximum=100
    )
    wanted_deviation: float = option(
        0.0,
        "rounds end when torque anywhere in the range is known to this share of it, in the least known joint; 0 never",
        minimum=0.0, maximum=10.0,
    )
    least_gain: float = option(
        0.1, "rounds end when one has lowered that deviation by less than this share", minimum=0.0, maximum=0.99
    )
