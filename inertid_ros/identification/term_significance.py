"""Significance of drive terms, transition speeds of friction, and Stribeck speeds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from inertid_ros.core.arrays import Array, Indices, Mask, r_factor
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.information import EarlierEquations, Information, compress
from inertid_ros.identification.solvers.coordinates import prior_coordinates, prior_covariance_root
from inertid_ros.regressors.equations import Equations, equations_of

_FALSE_POSITIVE_RATE = 1e-2  # share of joints, or robots, without the term that pass the test
# Weight of the prior on drives: negligible, only to settle joints without samples. A strong prior would suppress a
# part of Coulomb and viscous friction, which Stribeck friction would then explain.
_VAGUE_PRIOR_WEIGHT = 1e-3
_MIN_TRANSITION_SPEED = 1e-3  # rad/s or m/s; slower motion is as good as rest
# For normal noise, E sign(v + noise) = erf(v / (sqrt(2) noise)). With this factor, tanh(v / transition speed) has an
# equal slope at zero.
_TRANSITION_PER_NOISE = np.sqrt(np.pi / 2)
MIN_STRIBECK_SPEED, MAX_STRIBECK_SPEED = 0.005, 2.0  # rad/s or m/s; below is stiction, above viscous friction
_SPEED_CANDIDATES, _MAX_SPEED_SWEEPS = 14, 3
_LOG_SPEED_STEP = 0.02  # step of a speed's logarithm for numerical derivatives
_MAX_SPEED_STEPS, _LOG_SPEED_TOLERANCE = 12, 0.01  # Newton steps, and tolerance of a speed's logarithm
_MAX_LOG_SPEED_STEP = np.log(MAX_STRIBECK_SPEED / MIN_STRIBECK_SPEED) / (_SPEED_CANDIDATES - 1)  # to the next candidate
_MIN_TRANSITION_SPEEDS = 3.0  # least speed in transition speeds; the transition hides slower Stribeck friction
# Inverse variance of a log speed that is uniform between the least and the largest speed.
_LOG_SPEED_PRECISION = 12 / np.log(MAX_STRIBECK_SPEED / MIN_STRIBECK_SPEED) ** 2


@dataclass(frozen=True)
class DriveTermFit:
    """Linear fit of all parameters, with the data's information about one drive term.

    Attributes
    ----------
    factor, side : ndarray, shape (n, n) and (n,)
        Whitened equations ``factor y = side`` of the term's parameters ``y``; all other parameters are eliminated.
    """

    parameters: Array
    factor: Array
    side: Array

    @property
    def significance(self) -> Array:
        """Parameters ``(n,)`` over their standard deviations; the square is the misfit that a parameter explains."""
        inverse = scipy.linalg.solve_triangular(self.factor, np.eye(len(self.side)))
        return np.asarray(inverse @ self.side / np.linalg.norm(inverse, axis=1), dtype=float)

    @property
    def explained(self) -> float:
        """Weighted squared misfit that the term explains over all joints together, with parameters not below zero."""
        _, left = scipy.optimize.nnls(self.factor, self.side)
        return float(self.side @ self.side - left**2)


@dataclass(frozen=True)
class DriveTermTest:
    """Significance test of a drive term.

    The prior of bodies is normal under the pullback metric ([Lee2019]_ eq. 4.3.37). Only independent samples count.
    The test is one-sided, since the parameters cannot be negative.

    Attributes
    ----------
    weights : (c,), weight that scales a channel's equations to unit variance
    counts : (c,), number of independent samples per channel
    """

    weights: Array
    counts: Array
    prior_spreads: Array

    def fit(self, equations: Equations, information: Information, term: str) -> DriveTermFit:
        """Fit equations in which all joints have the term."""
        layout, coordinates = equations.model.layout, prior_coordinates(equations.model, information)
        root, given = prior_covariance_root(coordinates, self.prior_spreads), coordinates.physical(coordinates.prior)
        weight, tested = np.ones(layout.size), np.arange(layout.size)[layout.drive(term)]
        weight[layout.inertial_size :] = _VAGUE_PRIOR_WEIGHT
        order = np.concatenate([np.delete(np.arange(layout.size), tested), tested])
        R, z = information.whitened(self.weights)
        data = np.column_stack([(R @ root)[:, order], z - R @ given])
        factor = r_factor(np.vstack([data, np.column_stack([np.diag(weight)[:, order], np.zeros(layout.size)])]))
        last = slice(layout.size - len(tested), layout.size)
        whole = scipy.linalg.solve_triangular(factor[: layout.size, :-1], factor[: layout.size, -1])
        return DriveTermFit(given + root[:, order] @ whole, factor[last, last], factor[last, -1])

    def passed(self, equations: Equations, significance: Array, tried: int) -> Mask:
        """Mask ``(n,)`` of joints whose significance, the best of ``tried`` values, is improbable under noise alone."""
        chance = scipy.special.stdtr(np.maximum(self.counts[equations.joint_channels], 1.0), -significance)
        return np.asarray(tried * chance < _FALSE_POSITIVE_RATE)

    def passed_together(self, fit: DriveTermFit) -> bool:
        """Check whether the misfit that the term of all joints explains is improbable under noise alone.

        Noise alone pushes about half of the parameters to zero. The misfit that ``n`` parameters explain then has the
        chi-bar-squared distribution ([Silvapulle2005]_ ch. 3), here for independent joints.
        """
        joints = np.arange(1, len(fit.side) + 1)
        shares = scipy.special.comb(len(fit.side), joints) / 2.0 ** len(fit.side)
        return bool(shares @ scipy.special.chdtrc(joints, fit.explained) < _FALSE_POSITIVE_RATE)


def with_transition_speeds(equations: Equations, recordings: Sequence[Samples]) -> Equations:
    """Set transition speeds of friction from the noise of velocity.

    Near zero the sign of a measured velocity is uncertain. The expected sign, given the measurement, makes friction
    parameters right on average; the bare sign would make them too small. Transition speeds given by the robot stay.
    """
    for samples in recordings:
        equations.check(samples)
    model, levels = equations.model, [samples.noise for samples in recordings if samples.noise is not None]
    if model.layout.transition_speeds or not levels or not has_joints(equations):
        return equations
    noise = np.sqrt(np.mean(np.square(levels), axis=0))[model.velocities - model.joints :]
    speeds = np.maximum(_TRANSITION_PER_NOISE * noise, _MIN_TRANSITION_SPEED)
    return equations_of(model.with_layout(transition_speeds=tuple(speeds.tolist())), equations.equation_type)


def has_joints(equations: Equations) -> bool:
    """Check whether there are joint-torque equations, which contain friction."""
    return len(range(equations.count)[equations.joint_channels]) > 0


def check_stribeck(equations: Equations) -> None:
    """Check that there is Stribeck friction whose speed can be fitted."""
    if "stribeck" not in equations.model.layout.drive_terms or not has_joints(equations):
        raise IdentificationError(
            "identify.fit_stribeck_speed: there is no Stribeck friction in these equations; add stribeck to"
            " robot.drive_terms or leave it off")


def _with_stribeck_of(equations: Equations, information: Information, present: Mask) -> tuple[Equations, Information]:
    """Set the Stribeck columns of all joints to zero, except for joints in the mask ``present`` ``(n,)``."""
    model = equations.model
    if np.array_equal(present, model.layout.with_stribeck):
        return equations, information
    absent = tuple(name for name, shown in zip(model.joint_names, present, strict=True) if not shown)
    reduced = equations_of(model.with_layout(without_stribeck=absent), equations.equation_type)
    layout, channels, earlier = reduced.model.layout, [], information.earlier
    for channel in information.channels:
        factor = channel.r_factor.copy()
        factor[:, np.flatnonzero(np.isin(channel.columns, layout.absent))] = 0.0
        channels.append(replace(channel, r_factor=r_factor(factor)))
    if earlier is not None:
        earlier = replace(earlier, R=np.where(np.isin(np.arange(layout.size), layout.absent), 0.0, earlier.R))
    return reduced, replace(information, layout=layout, channels=tuple(channels), earlier=earlier)


def stribeck_where_significant(
        equations: Equations, information: Information, test: DriveTermTest) -> tuple[Equations, Information]:
    """Keep Stribeck friction, at the robot's speeds, only for joints with a significant effect."""
    present = equations.model.layout.with_stribeck
    if present.any() and has_joints(equations):
        present = present & test.passed(equations, test.fit(equations, information, "stribeck").significance, 1)
    return _with_stribeck_of(equations, information, present)


@dataclass(frozen=True)
class _SpeedGrid:
    """Information on a grid of Stribeck speeds, compressed once, for fits at any combination of joint speeds.

    Attributes
    ----------
    informations : per grid point, information with the speeds of all joints at this point
    """

    equations: Equations
    informations: tuple[Information, ...]
    test: DriveTermTest

    def information(self, points: Indices) -> Information:
        """Information with every joint at its own point ``(n,)`` of the grid."""
        channels = list(self.informations[0].channels)
        for channel, point in zip(range(len(channels))[self.equations.joint_channels], points, strict=True):
            channels[channel] = self.informations[point].channels[channel]
        return replace(self.informations[0], channels=tuple(channels))

    def fit(self, points: Indices) -> DriveTermFit:
        return self.test.fit(self.equations, self.information(points), "stribeck")

    def misfits(self, parameters: Array) -> Array:
        """Half the weighted squared error ``(k, n)`` at each grid point and joint, for one set of parameters."""
        squares = np.array([information.squared_errors(parameters) for information in self.informations])
        return (0.5 * squares * self.test.weights**2)[:, self.equations.joint_channels]


def fitted_stribeck(equations: Equations, recordings: Sequence[Samples], earlier: EarlierEquations | None,
        test: DriveTermTest) -> tuple[Equations, Information, Array]:
    """Fit the Stribeck speed of every joint, and keep Stribeck friction only if it is significant.

    Stribeck speeds are the only nonlinear drive parameters. The equations of a joint depend on the speed of this joint
    alone. So equations compressed once per grid point, with one speed for all joints, give every combination of
    speeds.

    Candidates lie from :data:`MIN_STRIBECK_SPEED` to :data:`MAX_STRIBECK_SPEED`, outside the transition at zero. An
    optimum at the first or last candidate, or with negative Coulomb friction, does not count: the effect is stiction
    or nonlinear viscous friction. Newton steps lead from the best candidates to the optimum of all speeds together. A
    joint without Stribeck friction keeps its given speed. Equations of an earlier result hold at other speeds, so they
    contribute no information about Stribeck friction.

    Returns
    -------
    equations, information : Equations and Information
        Equations and information with Stribeck friction only for joints with a significant effect.
    covariance : ndarray, shape (p, p)
        Covariance of the parameters due to the uncertainty of the speeds.
    """
    layout, kind = equations.model.layout, equations.equation_type

    def at_speeds(speeds: Array) -> Equations:
        faster = equations.model.with_layout(stribeck_speeds=tuple(speeds.tolist()), without_stribeck=())
        return equations_of(faster, kind)

    if earlier is not None:
        earlier = earlier.without(np.arange(layout.size)[layout.drive("stribeck")])

    def grid(speeds: Array) -> _SpeedGrid:
        informations = (replace(compress(at_speeds(speed), recordings), earlier=earlier) for speed in speeds)
        return _SpeedGrid(equations, tuple(informations), test)

    speeds = np.geomspace(MIN_STRIBECK_SPEED, MAX_STRIBECK_SPEED, _SPEED_CANDIDATES)
    hidden = speeds < _MIN_TRANSITION_SPEEDS * layout.transition_speed[: len(layout.joints), None]
    first = _best_candidates(grid(np.tile(speeds[:, None], len(layout.joints))), hidden)
    best, slopes, inverse, around = _refined(grid, speeds[first])
    information, tried = around.information(np.ones_like(first)), at_speeds(best)
    present = test.passed(tried, test.fit(tried, information, "stribeck").significance, _SPEED_CANDIDATES)
    present &= (best > speeds[0]) & (best > speeds[hidden.sum(axis=1)]) & (best < MAX_STRIBECK_SPEED)
    if present.any():
        equations = at_speeds(np.where(present, best, layout.stribeck_speed))
    information = replace(information, layout=equations.model.layout)
    shown = slopes[:, present]
    covariance = shown @ inverse[np.ix_(present, present)] @ shown.T
    return *_with_stribeck_of(equations, information, present), covariance


def _best_candidates(grid: _SpeedGrid, hidden: Mask) -> Indices:
    """Best candidate ``(n,)`` of every joint at all other joints' speeds; ``hidden`` ``(n, k)`` excludes candidates."""
    layout = grid.equations.model.layout
    joints, count = len(layout.joints), len(grid.informations)

    def explained(points: Indices) -> Array:
        """Misfit ``(n,)`` that each joint's Stribeck friction explains; zero if its Coulomb friction is negative."""
        fit = grid.fit(points)
        dry = fit.parameters[layout.drive("coulomb")] if "coulomb" in layout.drive_terms else np.zeros(joints)
        return np.where(dry >= 0, np.maximum(fit.significance, 0.0) ** 2, 0.0)

    alike = np.array([explained(np.full(joints, point)) for point in range(count)])
    best = np.where(hidden.T, -1.0, alike).argmax(axis=0)
    for _ in range(_MAX_SPEED_SWEEPS):
        before = best.copy()
        for joint in range(joints):
            values = np.full(count, -1.0)
            for point in np.flatnonzero(~hidden[joint]):
                values[point] = explained(np.where(np.arange(joints) == joint, point, best))[joint]
            best[joint] = values.argmax()
        if np.array_equal(best, before):
            break
    return best


def _refined(grid: Callable[[Array], _SpeedGrid], speeds: Array) -> tuple[Array, Array, Array, _SpeedGrid]:
    """Minimise the misfit over the speeds ``(n,)`` of all joints by Newton's method.

    Return the speeds, the slopes ``(p, n)`` of the parameters over log speeds, the covariance ``(n, n)`` of log speeds,
    and the grid around the speeds. At the best parameters, the slope of the misfit is its slope at constant
    parameters. So the slope follows from each joint's own equations; the curvature also needs the change of the best
    parameters with every speed.
    """
    joints, step = len(speeds), _LOG_SPEED_STEP
    middle, low, high = np.ones(joints, dtype=int), 0, 2
    for _ in range(_MAX_SPEED_STEPS):
        around = grid(speeds * np.exp(step * np.arange(-1, 2))[:, None])

        def slope(parameters: Array) -> Array:
            misfits = around.misfits(parameters)  # noqa: B023
            return (misfits[high] - misfits[low]) / (2 * step)

        parameters = around.fit(middle).parameters
        slower, faster = (
            [around.fit(np.where(np.arange(joints) == joint, point, middle)).parameters for joint in range(joints)]
            for point in (low, high))
        misfits = around.misfits(parameters)
        curvature = np.diag(misfits[low] - 2 * misfits[1] + misfits[high]) / step**2
        curvature += np.array([slope(b) - slope(a) for a, b in zip(slower, faster, strict=True)]) / (2 * step)
        values, vectors = np.linalg.eigh(0.5 * (curvature + curvature.T))
        inverse = (vectors / np.maximum(values, _LOG_SPEED_PRECISION)) @ vectors.T
        change = np.clip(-inverse @ slope(parameters), -_MAX_LOG_SPEED_STEP, _MAX_LOG_SPEED_STEP)
        moved = np.clip(speeds * np.exp(change), MIN_STRIBECK_SPEED, MAX_STRIBECK_SPEED)
        if np.abs(np.log(moved / speeds)).max() < _LOG_SPEED_TOLERANCE:
            break
        speeds = moved
    return speeds, (np.array(faster) - np.array(slower)).T / (2 * step), inverse, around
