"""Options of identification: the fit, classical estimators in its place, and what is known for certain."""

from collections.abc import Mapping

import attrs

from inertid_ros.core.errors import ConfigurationError

from .option_fields import REQUIRED, named, option
from .robot import DRIVE_TERMS

MOMENTUM_EQUATIONS = ("momentum", "momentum_change")
EQUATION_TYPES = ("force", *MOMENTUM_EQUATIONS)
REGULARIZERS = ("entropic", "pullback", "riemannian", "euclidean", "relative", "point_mass", "geodesic")
SOLVERS = ("interior_point", "clarabel")
PARAMETER_SCALINGS = ("metric", "prior", "none")
WEIGHTINGS = ("none", "residual")
RANKS = ("full", "gcv", "held_out", "variance", "auto")
NULL_SPACES = ("prior", "zero")
LOSSES = ("squares", "huber")


@attrs.frozen
class LeastSquaresOptions:
    """Which classical estimator; see :data:`ESTIMATORS` for those with a name.

    Weights of residuals are those of [vanDerGaag2024]_ eqs. 29-32, the scaling by the prior that of its sec. III-C.
    """

    weighting: str = option("residual", "none, or every joint by its residual's standard deviation, iterated",
        choices=WEIGHTINGS)
    scaling: str = option("metric", "of parameters: metric (free of units and frames), prior (their values in the"
        " prior, and no less than a tenth of their natural sizes, which are those of the metric) or none",
        choices=PARAMETER_SCALINGS)
    rank: str = option("full", "directions fitted: full, gcv (generalised cross-validation), held_out, variance"
        " (reduced identification), or auto (full where all have a small variance, else reduced)", choices=RANKS)
    null_space: str = option("prior", "what is not fitted stays at the prior, or at zero", choices=NULL_SPACES)
    loss: str = option("squares", "squares, or huber against gross outliers", choices=LOSSES)
    independent: bool = option(False, "take all samples as independent, as published tables do, however correlated"
        " their residuals")

    @property
    def name(self) -> str:
        """Of the method, for reports."""
        for name, options in ESTIMATORS.items():
            if self == options:
                return name
        return f"least squares: {self.loss}, {self.weighting} weights, {self.scaling} scaling, {self.rank} rank"


ESTIMATORS = {
    "ols": LeastSquaresOptions(weighting="none"),
    "wls": LeastSquaresOptions(),
    "truncated": LeastSquaresOptions(rank="gcv"),
    "reduced": LeastSquaresOptions(rank="variance"),
    "auto": LeastSquaresOptions(rank="auto"),
    "huber": LeastSquaresOptions(loss="huber"),
    # [vanDerGaag2024]_ sec. III: weighted rows, columns or both; rank by held-out data, the rest at the prior.
    "wls_r": LeastSquaresOptions(scaling="none", rank="held_out"),
    "wls_c": LeastSquaresOptions(weighting="none", scaling="prior", rank="held_out"),
    "wls_rc": LeastSquaresOptions(scaling="prior", rank="held_out"),
}


@attrs.frozen
class IdentifyOptions:
    """How to identify. The defaults are meant to be left alone."""

    equations: str = option("force", "what is measured: force (joint torques, and on a free base the external"
        " wrenches), momentum (of a robot that floats: what reaction wheels give it), or momentum_change (where joints"
        " and wheels do not start at zero momentum)", choices=EQUATION_TYPES)
    estimator: str = option("consistent", "consistent: bodies that can exist, near the prior; the others are classical"
        " least squares, as baselines, of which wls_c and wls_rc scale every column by the parameter's value in the"
        " prior, but by no less than a tenth of its natural size, so that a zero of the prior can be fitted, too",
        choices=("consistent", *ESTIMATORS))
    regularizer: str = option("entropic", "how distance to the prior is measured: entropic; relative, where every"
        " parameter is known up to some per cent; or for comparison pullback, riemannian, euclidean, point_mass (with"
        " OSQP) or geodesic", choices=REGULARIZERS)
    solver: str = option("interior_point", "of convex regularizers: interior_point (built in) or clarabel (through"
        " CVXPY)", choices=SOLVERS)
    prior_spread: float = option(0.0, "how far a link may be from its prior: standard deviation of its distance; 0"
        " learns it from the data", 0.0, 100.0)
    drive_weight: float = option(1.0, "weight of the prior that friction, rotor inertia and stiffness are small",
        1e-6, 1e3)
    outlier_threshold: float = option(12.0, "samples that miss the fit by more robust standard deviations than this are"
        " left out and counted; 0 keeps all", 0.0, 1e6)
    remove_delay: bool = option(True, "estimate by how much effort is reported later than motion (fixed base), and"
        " shift it back where it is significant and held-out blocks agree")
    prior: str = option("", "result directory to continue: the fit is that of its recordings and the new ones together;"
        " empty starts from the URDF")
    spread: Mapping[str, float] = named(float, "prior spread of a single link, such as one with a gripper that the URDF"
        " does not know (10 is anything); with prior, of a link that is not the one of that result any more; all stands"
        " for every other link", "spread_link_names", minimum=1e-3, maximum=100.0)
    changing_terms: tuple[str, ...] = option(("viscous", "coulomb", "offset", "stribeck"), "with prior, drive terms of"
        " which the new recordings have values of their own, as friction has every day", choices=DRIVE_TERMS)
    drive_gains: bool = option(False, "find the gain of every joint's drive, by which its efforts are multiplied; needs"
        " recordings with and without a known load (robot.loads), which alone fixes the scale")
    fit_stribeck_speed: bool = option(False, "find the speed of every joint's Stribeck friction; needs motion slow"
        " enough to show it")


@attrs.frozen
class MirrorOptions:
    """Of which link another is the mirror image."""

    link: str = option(REQUIRED, "the other link", of=str)
    axis: str = option(REQUIRED, "normal of the plane of reflection, of the links' frames", of=str,
        choices=("x", "y", "z"))


@attrs.frozen
class ConstraintOptions:
    """What is known of the robot for certain, beyond physical consistency."""

    collision_shapes: bool = option(False, "a link's mass lies within ellipsoids around its collision shapes")
    collision_margin: float = option(1.0, "factor on the axes of these ellipsoids", 0.1, 10.0)
    mesh_folders: tuple[str, ...] = option((), "folders in which package:// meshes of collision shapes are looked for")
    mass: Mapping[str, tuple[float, ...]] = named(float, "lowest and highest mass of a link [kg]", "mass_link_names",
        many=True, length=2, minimum=0.0, maximum=1e6)
    total_mass: float = option(0.0, "of all moving links [kg]; 0 where unknown", 0.0, 1e6)
    at_most: Mapping[str, float] = named(float, "highest value of a parameter, such as joint3.coulomb (SI)",
        "at_most_names", minimum=-1e9, maximum=1e9)
    fixed: tuple[str, ...] = option((), "parameters held at their value in the URDF, such as link3.m")
    equal: Mapping[str, str] = named(str, "parameter that has the same value, such as right_foot.m for left_foot.m",
        "equal_names")
    mirrored: Mapping[str, MirrorOptions] = named(MirrorOptions, "links that are mirror images of others",
        "mirrored_names")

    def __attrs_post_init__(self) -> None:
        for link, (lowest, highest) in self.mass.items():
            if lowest > highest:
                raise ConfigurationError(f"mass.{link} is {lowest:g} to {highest:g}; give the lowest first")


@attrs.frozen
class RoundsOptions:
    """When rounds of excitation and identification end."""

    rounds: int = option(1, "motions at most: each but the first asks for what the data so far left open", 1, 100)
    wanted_deviation: float = option(0.0, "rounds end when torque anywhere in the range is known to this share of it,"
        " in the least known joint; 0 never", 0.0, 10.0)
    least_gain: float = option(0.1, "rounds end when one has lowered that deviation by less than this share", 0.0, 0.99)
