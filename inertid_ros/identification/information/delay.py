"""Delay between torque and motion, which drivers report of different instants."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from inertid_ros.core.samples import Samples
from inertid_ros.regressors.equations import Equations
from inertid_ros.robot.model import RobotModel

from .information import Information, compress

_WEIGHT_ITERATIONS = 3


@dataclass(frozen=True)
class Delay:
    """How late torque is after motion.

    Attributes
    ----------
    seconds : float
        Positive where the torque of an instant is reported later than its motion.
    deviation : float
        Standard deviation, from the curvature of the residual, as if its equations were independent.
    """

    seconds: float
    deviation: float


def estimate_delay(equations: RobotModel | Equations, recordings: Sequence[Samples], longest: float = 0.05) -> Delay:
    """Shift of torque against motion at which least squares explains most.

    A delay of torque looks much like friction and inertia, so it is estimated together with all parameters: at every
    candidate the best parameters are solved for. With motion of one frequency alone it cannot be separated from
    friction.

    Parameters
    ----------
    equations : RobotModel or Equations
        A robot stands for its equations of force.
    longest : float, optional
        Candidates lie between minus and plus this [s].
    """
    counts = sum(int(samples.mask.sum()) for samples in recordings)

    def misfit(delay: float) -> float:
        """Of least squares with a delay removed."""
        return _misfit(compress(equations, [without_delay(samples, delay) for samples in recordings]))

    grid = np.linspace(-longest, longest, 9)
    coarse = [misfit(delay) for delay in grid]
    best = int(np.clip(np.argmin(coarse), 1, len(grid) - 2))
    bounds = grid[best - 1], grid[best + 1]
    optimum = scipy.optimize.minimize_scalar(misfit, bounds=bounds, method="bounded", options={"xatol": 1e-6})
    step = 0.01 * longest
    curvature = (misfit(optimum.x + step) - 2 * optimum.fun + misfit(optimum.x - step)) / step**2
    return Delay(float(optimum.x), float(1 / np.sqrt(max(counts * curvature, 1e-300))))


def without_delay(samples: Samples, delay: float) -> Samples:
    """Samples with the torque that belongs to their motion; what would lie outside the recording is masked."""
    if delay == 0:
        return samples
    shifted = samples.time + delay
    inside = (shifted >= samples.time[0]) & (shifted <= samples.time[-1])
    spline = scipy.interpolate.make_interp_spline(samples.time, samples.tau, k=3)
    tau = spline(np.clip(shifted, samples.time[0], samples.time[-1]))
    return replace(samples, tau=tau, mask=samples.mask & inside[:, None], usable=samples.usable & inside)


def _misfit(information: Information) -> float:
    """Mean logarithm of the residual deviation over all equations, for weighted least squares."""
    weights = 1 / np.maximum(information.rms_measured, 1e-12)
    for _ in range(_WEIGHT_ITERATIONS):
        R, z = information.whitened(weights)
        best = np.asarray(np.linalg.lstsq(R, z, rcond=1e-9)[0], dtype=float)
        error = information.rms_error(best)
        weights = 1 / np.maximum(error, 1e-12)
    return float(np.average(np.log(1 / weights), weights=information.counts))
