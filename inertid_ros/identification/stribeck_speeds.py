"""Speeds of Stribeck friction, the only nonlinear drive parameters, at the least misfit of all joints together.

The equations of a joint depend on its own speed alone. Compressed once at some speeds that are the same for all joints,
they show every combination of these speeds: the channel of each joint is taken from where its own speed is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.earlier_equations import EarlierEquations
from inertid_ros.identification.information.information import Information, compress
from inertid_ros.regressors.equations import Equations, equations_of

from .drive_term_test import DriveTermFit, DriveTermTest
from .friction_speeds import ChosenStribeck

SLOWEST, FASTEST = 0.005, 2.0  # rad/s or m/s; below is stiction, above viscous friction
_CANDIDATES, _SWEEPS = 14, 3
_FINE_STEP = 0.02  # of the logarithm of a speed, for derivatives
_NEWTON_STEPS, _CONVERGED = 12, 0.01  # of the logarithm of a speed
_LONGEST_STEP = np.log(FASTEST / SLOWEST) / (_CANDIDATES - 1)  # to the next candidate
_PER_TRANSITION = 3.0  # Stribeck friction of a lower speed, in transition speeds, is hidden by the transition
_RANGE_PRECISION = 12 / np.log(FASTEST / SLOWEST) ** 2  # of a logarithm that may be anywhere within the range


@dataclass(frozen=True)
class _SpeedGrid:
    """Fits at speeds of every joint that lie on a grid, compressed once.

    Attributes
    ----------
    equations : Equations
        Of the robot, with Stribeck friction in all joints.
    informations : tuple of Information
        Under the speeds of all joints at the first point of the grid, at the second, and so on.
    """

    equations: Equations
    informations: tuple[Information, ...]
    test: DriveTermTest

    @classmethod
    def of(
        cls,
        equations: Equations,
        recordings: Sequence[Samples],
        earlier: EarlierEquations | None,
        test: DriveTermTest,
        speeds: Array,
    ) -> "_SpeedGrid":
        """Of a grid of speeds ``(k, n)``."""
        model, kind = equations.model, equations.equation_type
        tried = [equations_of(model.with_stribeck_speeds(speed), kind) for speed in speeds]
        return cls(equations, tuple(replace(compress(each, recordings), earlier=earlier) for each in tried), test)

    def information(self, points: NDArray[np.intp]) -> Information:
        """With every joint at its own point ``(n,)`` of the grid."""
        channels = list(self.informations[0].channels)
        for channel, point in zip(range(len(channels))[self.equations.joint_channels], points, strict=True):
            channels[channel] = self.informations[point].channels[channel]
        return replace(self.informations[0], channels=tuple(channels))

    def fit(self, points: NDArray[np.intp]) -> DriveTermFit:
        """With every joint at its own point ``(n,)`` of the grid."""
        return self.test.fit(self.equations, self.information(points), "stribeck")

    def misfits(self, parameters: Array) -> Array:
        """``(k, n)`` halves of the squared errors of every joint at every point, of the same parameters, weighted."""
        joints = self.equations.joint_channels
        squares = [
            [channel.squared_error(parameters) for channel in each.channels[joints]] for each in self.informations
        ]
        return 0.5 * np.array(squares) * self.test.weights[joints] ** 2


def fitted_stribeck(
    equations: Equations, recordings: Sequence[Samples], earlier: EarlierEquations | None, test: DriveTermTest
) -> ChosenStribeck:
    """Stribeck friction at the speeds per joint at which the misfit is least, of joints where it is significant.

    Candidates lie from :data:`SLOWEST` to :data:`FASTEST`, but not within the transition at zero. Where the best is the
    first or the last, it is stiction or viscous friction that is not linear; so it is where Coulomb friction would be
    below zero. From the best candidates Newton steps lead to the optimum of all speeds together. A joint that does not
    show Stribeck friction keeps its speed. Equations of an earlier result, at another speed, say nothing of Stribeck
    friction.
    """
    layout = equations.model.layout
    if earlier is not None:
        earlier = earlier.without(np.arange(layout.size)[layout.drive("stribeck")])

    def grid(speeds: Array) -> _SpeedGrid:
        return _SpeedGrid.of(equations, recordings, earlier, test, speeds)

    speeds = np.geomspace(SLOWEST, FASTEST, _CANDIDATES)
    hidden = speeds < _PER_TRANSITION * layout.transition_speed[: len(layout.joints), None]
    first = _best_candidates(grid(np.tile(speeds[:, None], len(layout.joints))), hidden)
    found, covariance, at_found = _refined(grid, speeds[first])
    information = at_found.information(np.ones_like(first))
    tried = equations_of(equations.model.with_stribeck_speeds(found), equations.equation_type)
    present = test.passed(tried, test.fit(tried, information, "stribeck").significance, _CANDIDATES)
    present &= (found > speeds[0]) & (found > speeds[hidden.sum(axis=1)]) & (found < FASTEST)
    chosen = np.where(present, found, layout.stribeck_speed)
    if present.any():
        equations = equations_of(equations.model.with_stribeck_speeds(chosen), equations.equation_type)
    return ChosenStribeck.of(
        equations, replace(information, layout=equations.model.layout), present, covariance(present)
    )


def _best_candidates(grid: _SpeedGrid, hidden: NDArray[np.bool_]) -> NDArray[np.intp]:
    """``(n,)`` candidate of every joint that explains most, the others at theirs; ``hidden`` ``(n, k)`` are none."""
    layout = grid.equations.model.layout
    joints, count = len(layout.joints), len(grid.informations)

    def explained(points: NDArray[np.intp]) -> Array:
        """``(n,)`` misfit that Stribeck friction of every joint explains; zero where Coulomb friction is below zero."""
        fit = grid.fit(points)
        dry = fit.parameters[layout.drive("coulomb")] if "coulomb" in layout.drive_terms else np.zeros(joints)
        return np.where(dry >= 0, np.maximum(fit.significance, 0.0) ** 2, 0.0)

    alike = np.array([explained(np.full(joints, point)) for point in range(count)])
    best = np.where(hidden.T, -1.0, alike).argmax(axis=0)
    for _ in range(_SWEEPS):
        before = best.copy()
        for joint in range(joints):
            values = np.full(count, -1.0)
            for point in np.flatnonzero(~hidden[joint]):
                values[point] = explained(np.where(np.arange(joints) == joint, point, best))[joint]
            best[joint] = values.argmax()
        if np.array_equal(best, before):
            break
    return best


def _refined(
    grid: Callable[[Array], _SpeedGrid], speeds: Array
) -> tuple[Array, Callable[[NDArray[np.bool_]], Array], _SpeedGrid]:
    """Speeds ``(n,)`` of the least misfit, the covariance of parameters by theirs, and the grid around them.

    The misfit of the best parameters has the slope that it has at constant parameters; so its slope is that of each
    joint's own equations, and its curvature follows from the change of the best parameters with every speed.
    """
    joints, step = len(speeds), _FINE_STEP
    middle, low, high = np.ones(joints, dtype=int), 0, 2
    for _ in range(_NEWTON_STEPS):
        around = grid(speeds * np.exp(step * np.arange(-1, 2))[:, None])

        def slope(parameters: Array) -> Array:
            misfits = around.misfits(parameters)  # noqa: B023
            return (misfits[high] - misfits[low]) / (2 * step)

        parameters = around.fit(middle).parameters
        slower, faster = (
            [around.fit(np.where(np.arange(joints) == joint, point, middle)).parameters for joint in range(joints)]
            for point in (low, high)
        )
        misfits = around.misfits(parameters)
        curvature = np.diag(misfits[low] - 2 * misfits[1] + misfits[high]) / step**2
        curvature += np.array([slope(b) - slope(a) for a, b in zip(slower, faster, strict=True)]) / (2 * step)
        values, vectors = np.linalg.eigh(0.5 * (curvature + curvature.T))
        inverse = (vectors / np.maximum(values, _RANGE_PRECISION)) @ vectors.T
        change = np.clip(-inverse @ slope(parameters), -_LONGEST_STEP, _LONGEST_STEP)
        moved = np.clip(speeds * np.exp(change), SLOWEST, FASTEST)
        if np.abs(np.log(moved / speeds)).max() < _CONVERGED:
            break
        speeds = moved
    slopes = (np.array(faster) - np.array(slower)).T / (2 * step)

    def covariance(present: NDArray[np.bool_]) -> Array:
        own = slopes[:, present]
        return own @ inverse[np.ix_(present, present)] @ own.T

    return speeds, covariance, around
