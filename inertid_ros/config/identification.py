"""Options of identification: the fit, classical estimators in its place, and constraints."""

from collections.abc import Mapping

import attrs

from inertid_ros.core.errors import ConfigurationError

from .option_fields import REQUIRED, SIX, TRIPLE, named, option, vector
from .robot import CHANGING_TERMS, DRIVE_TERMS

MOMENTUM_EQUATIONS = ("momentum", "momentum_change")
EQUATION_TYPES = ("force", *MOMENTUM_EQUATIONS)
REGULARIZERS = ("entropic", "pullback", "riemannian", "euclidean", "relative", "point_mass", "geodesic")
QUADRATIC_REGULARIZERS = ("pullback", "euclidean", "relative")
SOLVERS = ("interior_point", "clarabel")
PARAMETER_SCALINGS = ("metric", "prior", "none")
WEIGHTINGS = ("none", "residual")
RANKS = ("full", "gcv", "held_out", "variance", "auto")
NULL_SPACES = ("prior", "zero")
LOSSES = ("squares", "huber")
_VARIANCE_LIMIT = 0.01  # of the source's study; the prior has about 0.1


@attrs.frozen
class LeastSquaresOptions:
    """Classical least-squares estimator; :data:`ESTIMATORS` has the named estimators.

    The weighting follows [vanDerGaag2024]_ eqs. 28-32, the scaling by the prior follows [vanDerGaag2024]_ sec. III-C.
    """

    weighting: str = option("residual", "none, or each joint by its residual's deviation, iterated", choices=WEIGHTINGS)
    scaling: str = option("metric", "scaling of parameters: metric (independent of units and frames), prior (prior"
        " values, and at least a tenth of their natural sizes by the metric) or none",
        choices=PARAMETER_SCALINGS)
    rank: str = option("full", "directions fitted: full, gcv (generalised cross-validation), held_out, variance"
        " (reduced identification), or auto (full if all have a small variance, else reduced)", choices=RANKS)
    variance_limit: float = option(_VARIANCE_LIMIT, "largest variance of fitted directions", 1e-9, 1e3)
    kept_parameters: int = option(0, "number of fitted directions in place of the limit; 0: the limit", 0, 100_000)
    null_space: str = option("prior", "other directions stay at the prior, or at zero", choices=NULL_SPACES)
    loss: str = option("squares", "squares, or huber against gross outliers", choices=LOSSES)
    independent: bool = option(False, "treat all samples as independent, as published tables do, even if residuals"
        " are correlated")
    sensor_deviation: Mapping[str, float] = named(float, "standard deviation of the noise of every channel, in place"
        " of its residual's [N m or N]", "sensor_names", minimum=1e-12, maximum=1e12)

    @property
    def name(self) -> str:
        """Name of the method for reports."""
        for name, options in ESTIMATORS.items():
            if self == attrs.evolve(
                    options, variance_limit=self.variance_limit, kept_parameters=self.kept_parameters,
                    sensor_deviation=self.sensor_deviation):
                return name
        return f"least squares: {self.loss}, {self.weighting} weights, {self.scaling} scaling, {self.rank} rank"


ESTIMATORS = {
    "ols": LeastSquaresOptions(weighting="none"),
    "wls": LeastSquaresOptions(),
    "truncated": LeastSquaresOptions(rank="gcv"),
    "reduced": LeastSquaresOptions(rank="variance"),
    "auto": LeastSquaresOptions(rank="auto"),
    "huber": LeastSquaresOptions(loss="huber"),
    # [vanDerGaag2024]_ sec. III: weighted rows, columns or both; rank by held-out data, other directions at the prior.
    "wls_r": LeastSquaresOptions(scaling="none", rank="held_out"),
    "wls_c": LeastSquaresOptions(weighting="none", scaling="prior", rank="held_out"),
    "wls_rc": LeastSquaresOptions(scaling="prior", rank="held_out")}
# Estimators that divide by deviations, which may also be stated.
WEIGHTED_ESTIMATORS = tuple(
    name for name, options in ESTIMATORS.items() if options.weighting == "residual" and options.loss == "squares")


@attrs.frozen
class IdentifyOptions:
    """Identification. The defaults are meant to stay unchanged."""

    equations: str = option("force", "measured quantity: force (joint torques, and external wrenches on a free"
        " base), momentum (of a floating robot, from its reaction wheels), or momentum_change (if joints and wheels do"
        " not start at zero momentum)", choices=EQUATION_TYPES)
    estimator: str = option("consistent", "consistent: physically consistent bodies near the prior; all other"
        " estimators are classical least squares, as baselines; wls_c and wls_rc scale every column by the prior value"
        " of the parameter, but at least by a tenth of its natural size, so that a prior of zero can be fitted, too",
        choices=("consistent", *ESTIMATORS))
    variance_limit: float = option(_VARIANCE_LIMIT, "estimators reduced and auto fit only directions whose variance is"
        " at most this, under the metric of bodies, where the prior has a variance of about 0.1", 1e-9, 1e3)
    kept_parameters: int = option(0, "estimator reduced fits this number of directions of smallest variance, for"
        " example excitation.kept_parameters of the planned motion; 0: by identify.variance_limit", 0, 100_000)
    sensor_deviation: Mapping[str, float] = named(float, "standard deviation of the noise of a joint's torque sensor,"
        " or of another channel of the report; weighted estimators then divide by these instead of by the deviations of"
        " residuals; give all channels [N m or N]", "sensor_names", minimum=1e-12, maximum=1e12)
    regularizer: str = option("entropic", "measure of the distance to the prior: entropic; relative, if every"
        " parameter is known up to a few per cent; or for comparison pullback, riemannian, euclidean, point_mass (with"
        " OSQP) or geodesic (geodesic distance to the equation of every sample, slow, and for little noise only)",
        choices=REGULARIZERS)
    solver: str = option("interior_point", "solver of convex regularizers: interior_point (built in) or clarabel"
        " (through CVXPY)", choices=SOLVERS)
    prior_spread: float = option(0.0, "standard deviation of a link's distance to its prior; 0 estimates it from"
        " the data", 0.0, 100.0)
    drive_weight: float = option(1.0, "weight of the prior that friction, rotor inertia and stiffness are small",
        1e-6, 1e3)
    outlier_threshold: float = option(12.0, "samples with residuals above this many robust standard deviations are"
        " left out and counted; 0 keeps all", 0.0, 1e6)
    remove_delay: bool = option(True, "estimate the delay of effort after motion (fixed base), and remove it if it"
        " is significant and held-out blocks agree")
    prior: tuple[str, ...] = option((), "result directory to continue: its recordings and the new recordings are"
        " fitted together; or a URDF, or several results and URDFs of this type of robot: the mean of their bodies is"
        " the prior; empty starts from the URDF", of=str | tuple[str, ...])
    spread: Mapping[str, float] = named(float, "prior spread of a single link or rotor, such as a link with a gripper"
        " that is not in the URDF (10 allows any body); with identify.prior set, of a link that changed since that"
        " result; the name all stands for every link that has no entry of its own", "spread_link_names", minimum=1e-3,
        maximum=100.0)
    changing_terms: tuple[str, ...] = option(CHANGING_TERMS, "with identify.prior"
        " set: drive terms that get new values for the new recordings, since friction changes from day to day",
        choices=DRIVE_TERMS)
    drive_gains: bool = option(False, "estimate the gain of every joint's drive, a factor on its efforts; needs"
        " recordings with and without a known load (robot.loads), because only a known load determines the scale; with"
        " robot.effort position_command, both gains of every joint, which keep the scale of the given gains if there is"
        " no load")
    fit_stribeck_speed: bool = option(False, "estimate the speed of every joint's Stribeck friction; needs slow motion")

    @property
    def least_squares(self) -> LeastSquaresOptions:
        """Options of the classical estimator; KeyError for ``consistent``."""
        return attrs.evolve(
            ESTIMATORS[self.estimator], variance_limit=self.variance_limit, kept_parameters=self.kept_parameters,
            sensor_deviation=self.sensor_deviation)


@attrs.frozen
class MirrorOptions:
    """Link that is the mirror image of another link, and the plane of reflection."""

    link: str = option(REQUIRED, "mirror image of the link in the key", of=str)
    axis: str = option(REQUIRED, "normal of the plane of reflection, in the links' frames", of=str,
        choices=("x", "y", "z"))


@attrs.frozen
class EllipsoidOptions:
    """Ellipsoid fixed to a link that holds its mass or its centre of mass ([Wensing2018]_ eqs. 21-23)."""

    link: str = option(REQUIRED, "moving link, whose joint frame the ellipsoid is given in", of=str)
    semi_axes: tuple[float, ...] = option(REQUIRED, "half lengths of its axes [m]", 1e-6, 1e3, of=TRIPLE)
    centre: tuple[float, ...] = vector((0.0, 0.0, 0.0), "centre [m]", 1e3)
    rpy: tuple[float, ...] = vector((0.0, 0.0, 0.0), "roll, pitch and yaw of its axes [rad]", 10.0)
    holds: str = option("mass", "mass: all of the link's mass lies inside, or inside the union of several such"
        " ellipsoids; com: its centre of mass", choices=("mass", "com"))


@attrs.frozen
class ConstraintOptions:
    """Physical consistency, and known facts about the robot beyond it."""

    consistency: str = option("full", "full: every body has a mass distribution; or for comparison semi: only mass and"
        " rotational inertia are positive, which no body may have, so that controllers and simulators must not use the"
        " result; it needs identify.regularizer euclidean, pullback or relative", choices=("full", "semi"))
    collision_shapes: bool = option(False, "a link's mass lies within ellipsoids around its collision shapes")
    collision_margin: float = option(1.0, "factor on the axes of the ellipsoids of constraints.collision_shapes", 0.1,
        10.0)
    mesh_folders: tuple[str, ...] = option((), "folders to search for package:// meshes of collision shapes")
    ellipsoids: Mapping[str, EllipsoidOptions] = named(EllipsoidOptions, "ellipsoids that hold the mass (in place of"
        " ellipsoids around collision shapes) or the centre of mass of a link", "ellipsoid_names")
    mass: Mapping[str, tuple[float, ...]] = named(tuple[float, float], "lowest and highest mass of a link [kg]",
        "mass_link_names", minimum=0.0, maximum=1e6)
    total_mass: float = option(0.0, "mass of all moving links [kg]; 0 if unknown", 0.0, 1e6)
    total_mass_range: tuple[float, ...] = option((), "lowest and highest mass of all moving links [kg]", 0.0, 1e6,
        of=tuple[float, float])
    com_distance: Mapping[str, float] = named(float, "largest distance of a link's centre of mass from that of the"
        " URDF [m]", "com_distance_link_names", minimum=1e-6, maximum=1e3)
    com_box: Mapping[str, tuple[float, ...]] = named(SIX, "box that holds a link's centre of mass, in its joint frame:"
        " lowest x, y, z, then highest x, y, z [m]", "com_box_link_names", minimum=-1e3, maximum=1e3)
    at_most: Mapping[str, float] = named(float, "highest value of a parameter, such as joint3.coulomb (SI)",
        "at_most_names", minimum=-1e9, maximum=1e9)
    fixed: tuple[str, ...] = option((), "parameters held at their prior (by default the value in the URDF), such as"
        " link3.m")
    equal: Mapping[str, str] = named(str, "parameter that is equal to the one in the key, such as right_foot.m for"
        " left_foot.m", "equal_names")
    mirrored: Mapping[str, MirrorOptions] = named(MirrorOptions, "links that are mirror images of other links",
        "mirrored_names")

    def __attrs_post_init__(self) -> None:
        for link, (lowest, highest) in self.mass.items():
            if lowest > highest:
                raise ConfigurationError(f"mass.{link} is {lowest:g} to {highest:g}; give the lowest first")
        if self.consistency == "semi" and (
                self.collision_shapes or any(ellipsoid.holds == "mass" for ellipsoid in self.ellipsoids.values())):
            raise ConfigurationError("consistency is semi, but mass inside ellipsoids needs full; correct one of them")
        if self.total_mass_range and self.total_mass_range[0] >= self.total_mass_range[1]:
            raise ConfigurationError(
                f"total_mass_range is {list(self.total_mass_range)}; give the lowest first, or set total_mass")
        if self.total_mass_range and self.total_mass:
            raise ConfigurationError("total_mass and total_mass_range are both given; remove one of them")
        for link, box in self.com_box.items():
            if any(lowest >= highest for lowest, highest in zip(box[:3], box[3:], strict=True)):
                raise ConfigurationError(f"com_box.{link} is {list(box)}; give the lowest x, y, z, then the highest")
        centres = [ellipsoid.link for ellipsoid in self.ellipsoids.values() if ellipsoid.holds == "com"]
        for link in (*centres, *self.com_distance):
            if centres.count(link) + (link in self.com_distance) > 1:
                raise ConfigurationError(
                    f"ellipsoids and com_distance hold the centre of mass of '{link}' twice; give one of them")


@attrs.frozen
class RoundsOptions:
    """Criteria that end the rounds of excitation and identification."""

    rounds: int = option(1, "largest number of motions: each new motion excites what is still uncertain", 1, 100)
    wanted_deviation: float = option(0.0, "rounds end when predicted torque over the range has this relative standard"
        " deviation in the worst joint; 0: never", 0.0, 10.0)
    least_gain: float = option(0.1, "rounds end when a round lowers this deviation by less than this share", 0.0, 0.99)
