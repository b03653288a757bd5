"""Result of identification: parameters, their uncertainty, the fitted data, and the identifiability of parameters."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from inertid_ros.core.arrays import Array, Mask, inverse_root
from inertid_ros.core.inertial_parameters import geodesic_distance, is_consistent, min_eigenvalue
from inertid_ros.core.samples import Samples
from inertid_ros.identification.base_parameters.numeric import BaseParameters
from inertid_ros.identification.information.delay import Delay
from inertid_ros.identification.information.information import Information
from inertid_ros.identification.solvers import coordinates as priors
from inertid_ros.identification.solvers.convex_program import Solution
from inertid_ros.regressors.equations import Equations
from inertid_ros.robot.layout import ParameterLayout, UserTerm
from inertid_ros.robot.model import RobotModel

from .unmodelled import UnmodelledEffects

IDENTIFIED, COMBINED, PARTLY, PRIOR = (
    "identified", "identified only in combination", "partly identified", "left at the prior")
VERDICTS = (PRIOR, PARTLY, COMBINED, IDENTIFIED)  # in ascending order
PARTLY_SHARE = 0.5  # data and prior are equally accurate
_IDENTIFIED_SHARE = 0.9  # share of the prior variance that the data remove: the prior is a tenth of the information
_MEMBER_SHARE = 0.1  # share of the largest prior deviation in a combination that every member reaches
MOVED_DEVIATIONS = 3.0  # prior deviations; a value farther off the prior comes from the data, regardless of the share
NORMAL_95 = 1.96  # deviations on either side of the mean that hold 95 % of a normal distribution
_AnyEstimate = TypeVar("_AnyEstimate", bound="Estimate")


@dataclass(frozen=True)
class TermChoice:
    """Decision on keeping a user term, see :mod:`inertid_ros.identification.term_choice`.

    Attributes
    ----------
    gain : float
        Share of the weighted squared error of a held-out block that the term removes, geometric mean over the blocks;
        NaN if the term was not tested.
    deviation : standard deviation of the gain, from its scatter over the blocks
    body_log_odds : float
        Log odds, by the prior of bodies and drives alone, of the estimate with the term over the estimate without it.
        High if bodies would have to imitate the term's torque; NaN if the term was not tested.
    """

    term: UserTerm
    kept: bool
    gain: float = float("nan")
    deviation: float = float("nan")
    body_log_odds: float = float("nan")


@dataclass(frozen=True)
class Identifiability:
    """Identifiability of one standard parameter.

    Attributes
    ----------
    verdict : str
        :data:`IDENTIFIED` or :data:`COMBINED` if the share is at least nine tenths, :data:`PARTLY` if it is at least
        half or the value is three prior deviations from the prior, else :data:`PRIOR`.
    combinations : tuple of str
        Base parameters that contain the parameter and that the data determine to the degree of the verdict, most
        important first; the parameter itself if it is identified.
    share : largest share (0 to 1) of prior variance that the data remove from a base parameter with this parameter
    relative_deviation : standard deviation of the estimate over its value; infinite if the value is zero
    moved : difference from the prior's value, in prior deviations or in the estimate's deviations if these are larger
    """

    parameter: str
    verdict: str
    combinations: tuple[str, ...]
    share: float
    relative_deviation: float = float("inf")
    moved: float = 0.0

    @property
    def shown_by_data(self) -> bool:
        """True if the share is at least one half, regardless of the distance from the prior."""
        return self.share >= PARTLY_SHARE

    def __str__(self) -> str:
        which = f" {self.combinations[0]}" if self.verdict == COMBINED else ""
        off = f" ({abs(self.moved):.2g} prior deviations from the prior)" if abs(self.moved) >= MOVED_DEVIATIONS else ""
        return f"{self.parameter}: {self.verdict}{which}{off}"


def log_normal_interval(median: Array, deviation: Array) -> Array:
    """95 % intervals ``(k, 2)`` of log-normal distributions.

    Parameters
    ----------
    median : (k,), above zero
    deviation : (k,), standard deviations; ``deviation / median`` approximates their ratio to the mean
    """
    of_logarithm = np.sqrt(np.log1p((deviation / median) ** 2))
    return np.asarray(median[:, None] * np.exp(NORMAL_95 * of_logarithm[:, None] * [-1.0, 1.0]))


@dataclass(frozen=True)
class Estimate:
    """Parameters of a robot, their covariance, and the fitted data.

    Attributes
    ----------
    parameters : (p,), in the order of ``model.layout``
    covariance : ndarray, shape (p, p)
        Expected products of the errors of ``parameters``, from data and prior together. They include model errors that
        show as variation between blocks of residuals.
    residual_deviation : (c,), standard deviation of the fit's residual per channel
    effective_counts : (c,), number of independent samples with as much information as the channel's correlated samples
    base : base parameters of the data
    train_relative_error : ``|error| / |measured|`` over all channels on the fitted data
    prior_spread : standard deviation of the geodesic distance to the prior, given or estimated from the data
    recordings : names of the recordings fitted
    information : information of the recordings, without outliers
    weights : (c,), residual weight per channel
    outliers : (c,), number of gross outliers left out per channel; None if outliers were not searched
    left_out : parameters that are zero because they are not significant
    delay : delay of effort after motion that has been removed [s]
    delay_found : estimated delay, removed or not; None if no delay was estimated
    own_prior_spreads : (nb,), separate prior spreads of links and rotors; NaN for bodies with ``prior_spread``
    term_choices : one per user term, including removed terms
    bounded_interval : ndarray or None, shape (p, 2)
        95 % intervals of parameters that cannot be negative, one-sided if zero is near; NaN for other parameters.
    unmodelled : effects outside the equations; None if they were not estimated
    """

    equations: Equations
    parameters: Array
    covariance: Array
    residual_deviation: Array
    effective_counts: Array
    base: BaseParameters
    train_relative_error: float
    prior_spread: float
    solution: Solution
    recordings: tuple[str, ...]
    information: Information
    weights: Array
    outliers: np.ndarray | None = None
    left_out: tuple[str, ...] = ()
    delay: float = 0.0
    identifiability: tuple[Identifiability, ...] = ()
    own_prior_spreads: Array | None = None
    term_choices: tuple[TermChoice, ...] = ()
    bounded_interval: Array | None = None
    delay_found: Delay | None = None
    unmodelled: UnmodelledEffects | None = None

    @property
    def model(self) -> RobotModel:
        return self.equations.model

    @property
    def layout(self) -> ParameterLayout:
        return self.model.layout

    @property
    def prior(self) -> Array:
        """Parameters of the prior ``(p,)``, by default of the URDF as given."""
        return self.model.prior

    @property
    def bodies(self) -> Array:
        """``(nb, 10)`` inertial parameters of the links."""
        return self.layout.bodies(self.parameters)

    def drive(self, term: str) -> Array:
        """Values ``(n,)`` of a drive term; zeros if it was not identified."""
        if term not in self.layout.drive_terms:
            return np.zeros(self.model.joints)
        return self.parameters[self.layout.drive(term)]

    @cached_property
    def standard_deviation(self) -> Array:
        """``(p,)`` standard deviation of every parameter."""
        return np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))

    @property
    def prior_spreads(self) -> Array:
        """``(nb,)`` prior spread of every link and rotor."""
        return priors.body_spreads(self.prior_spread, self.own_prior_spreads, len(self.layout.body_names))

    @cached_property
    def interval(self) -> Array:
        """95 % interval ``(p, 2)`` of every parameter.

        Parameters that are positive for every consistent body (mass, diagonal of the inertia) have a log-normal
        interval: the prior is normal along geodesics, which are exponential in these parameters ([Lee2019]_ sec. 3.3).
        If the data leave a mass open, three times the URDF's mass is as probable as a third of the URDF's mass.
        """
        normal = self.parameters[:, None] + NORMAL_95 * self.standard_deviation[:, None] * [-1.0, 1.0]
        positive = self.layout.positive_of_bodies
        positive = positive[self.parameters[positive] > 0.0]
        normal[positive] = log_normal_interval(self.parameters[positive], self.standard_deviation[positive])
        bounded = np.full(normal.shape, np.nan) if self.bounded_interval is None else self.bounded_interval
        return np.where(np.isnan(bounded), normal, bounded)

    @cached_property
    def shown_by_data(self) -> Mask:
        """Mask ``(p,)`` of parameters that the data determine, alone or in combination.

        Any other parameter has the prior's value, or follows parameters that the data determine: a link with a large
        first moment becomes heavy as well, even if torques do not depend on its mass.
        """
        return np.array([parameter.shown_by_data for parameter in self.identifiability], dtype=bool)

    @property
    def consistent(self) -> bool:
        return bool(is_consistent(self.layout.all_bodies(self.parameters)).all())

    @property
    def min_eigenvalues(self) -> Array:
        """``(nb,)`` smallest eigenvalue of each pseudo-inertia."""
        return min_eigenvalue(self.bodies)

    @property
    def distance_to_prior(self) -> Array:
        """Geodesic distance ``(nb,)`` of each body to its prior (repaired if inconsistent)."""
        return geodesic_distance(self.bodies, self.model.consistent_body_prior)

    def torque(self, samples: Samples) -> Array:
        """Predicted measurement ``(N, c)`` along samples: joint torque for equations of force."""
        return self.equations.predict(self.parameters, samples)


def with_identifiability(estimate: _AnyEstimate) -> _AnyEstimate:
    """Add the identifiability of the parameters to an estimate; only independent samples count.

    For every regularizer and all hard constraints of the fit, the prior here is normal under the pullback metric
    ([Lee2019]_ eq. 4.3.37). Base parameters count as independent under this prior: a parameter that only correlates
    with an identified parameter does not count as identified.
    """
    information, base = estimate.information, estimate.base
    R = information.independent(estimate.residual_deviation, estimate.effective_counts).R
    coordinates = priors.prior_coordinates(estimate.model, information)
    root = priors.prior_covariance_root(coordinates, estimate.prior_spreads)
    # Share of each base parameter's prior variance that remains after the data.
    sizes = np.linalg.norm(base.projection @ root, axis=1)
    remaining = np.sum(inverse_root(np.vstack([R[:, base.independent] * sizes, np.eye(base.count)])) ** 2, axis=1)
    # Distance from the prior, in deviations of the prior or of the estimate, whichever is larger. A prior spread that
    # was estimated from the data counts as at most the typical prior spread.
    common = min(estimate.prior_spread, priors.TYPICAL_PRIOR_SPREAD)
    spreads = priors.body_spreads(common, estimate.own_prior_spreads, len(estimate.prior_spreads))
    scale = np.linalg.norm(priors.prior_covariance_root(coordinates, spreads), axis=1)
    scale = np.maximum(scale, estimate.standard_deviation)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.nan_to_num(estimate.standard_deviation / np.abs(estimate.parameters), nan=np.inf)
    moved = (estimate.parameters - coordinates.physical(coordinates.prior)) / scale
    shares, deviation = np.clip(1 - remaining, 0.0, 1.0), np.linalg.norm(root, axis=1)
    return replace(estimate, identifiability=identifiability(base, shares, deviation, relative, moved))


def identifiability(
    base: BaseParameters, base_shares: Array, prior_deviation: Array, relative_deviation: Array, moved: Array
) -> tuple[Identifiability, ...]:
    """Identifiability of every standard parameter, in the order of the layout.

    Parameters
    ----------
    base_shares : (r,), share of the prior variance of each base parameter that the data removes, 0 to 1
    prior_deviation : (p,), prior standard deviation of the standard parameters
    relative_deviation, moved : (p,), values of the standard parameters, see :class:`.Identifiability`
    """
    deviation = np.abs(base.projection) * prior_deviation
    weight = deviation / np.maximum(deviation.max(axis=1, keepdims=True), np.finfo(float).tiny)
    alone, names = set(base.alone.tolist()), base.names
    parameters = []
    for column, name in enumerate(base.layout.names):
        members = np.flatnonzero(weight[:, column] >= _MEMBER_SHARE)
        share = float(base_shares[members].max(initial=0.0))
        verdict = IDENTIFIED if column in alone else COMBINED
        within = members[base_shares[members] >= _IDENTIFIED_SHARE]
        if len(within) == 0:
            off = abs(moved[column]) >= MOVED_DEVIATIONS
            within = members if off else members[base_shares[members] >= PARTLY_SHARE]
            verdict = PARTLY if off or len(within) else PRIOR
        within = within[np.argsort(-weight[within, column], kind="stable")]
        combinations = tuple(names[row] for row in within)
        parameters.append(
            Identifiability(name, verdict, combinations, share, float(relative_deviation[column]), float(moved[column]))
        )
    return tuple(parameters)
