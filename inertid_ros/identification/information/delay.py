"""Delay between torque and motion, which drivers report of different instants."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.regressors.equations import Equations, equations_of
from inertid_ros.robot.model import RobotModel

from .residuals import effective_fraction
from .shifted_torque import SHIFTS, ShiftedTorque

_BLOCKS = 4  # of each recording; each is predicted by a fit to all others
_SURE = 3.0  # standard deviations from zero
_WORSE = 0.01  # share of the squared error of held-out blocks; less, worse or better, says little of the delay
_CURVED = 5e-4  # s; step of the second difference
_TINY = 1e-300


@dataclass(frozen=True)
class Delay:
    """How late torque is after motion.

    Attributes
    ----------
    seconds : float
        Positive where the torque of an instant is reported later than its motion.
    deviation : float
        Standard deviation, from the curvature of the residual and its independent samples; infinite where the best
        shift is the largest that was tried.
    gain : float
        Share by which the shift lowers the squared error of blocks that were held out.
    """

    seconds: float
    deviation: float
    gain: float

    @property
    def at_border(self) -> bool:
        """Whether there is no optimum among the delays that drivers can have."""
        return bool(np.isinf(self.deviation))

    @property
    def predicts_better(self) -> bool:
        """Whether held-out blocks are clearly predicted better with the shift."""
        return self.gain > _WORSE

    @property
    def significant(self) -> bool:
        """Whether there is a delay: clearly not zero, and held-out blocks are not predicted worse without it."""
        return self.gain > -_WORSE and abs(self.seconds) > _SURE * self.deviation

    @property
    def removed(self) -> float:
        """The shift that is taken out of recordings [s]; zero where it is not significant."""
        return self.seconds if self.significant else 0.0


def may_be_shifted(equations: Equations, recordings: Sequence[Samples]) -> bool:
    """Whether a delay is one number for all channels, and torque was low-passed, so that it can be interpolated.

    On a free base torque holds wrenches, too, which come from other devices.
    """
    force_alone = equations.equation_type == "force" and not equations.model.free
    return force_alone and all(samples.cutoff_hz > 0 for samples in recordings)


def estimate_delay(source: RobotModel | Equations, recordings: Sequence[Samples]) -> Delay:
    """Shift of torque against motion at which least squares explains most.

    A delay of torque looks much like friction and inertia, so it is estimated together with all parameters: at every
    shift the best parameters are solved for. With motion of one frequency alone it cannot be separated from friction,
    and its deviation comes out large.

    Parameters
    ----------
    source : RobotModel or Equations
        A robot stands for its equations of force.
    recordings : sequence of Samples
        Of at least some seconds each.
    """
    equations = equations_of(source)
    blocks = [
        ShiftedTorque.of(equations, samples, rows)
        for samples in recordings
        for rows in samples.block_rows(_BLOCKS)
    ]
    whole = ShiftedTorque.sum(blocks)
    misfits = [_misfit(whole, shift) for shift in SHIFTS]
    best = int(np.argmin(misfits))
    if best in (0, len(SHIFTS) - 1):
        return Delay(float(SHIFTS[best]), float("inf"), _gain(blocks, whole, float(SHIFTS[best])))
    optimum = scipy.optimize.minimize_scalar(
        lambda shift: _misfit(whole, shift),
        bounds=(SHIFTS[best - 1], SHIFTS[best + 1]),
        method="bounded",
        options={"xatol": 1e-6},
    )
    seconds = float(optimum.x)
    sides = _misfit(whole, seconds - _CURVED) + _misfit(whole, seconds + _CURVED)
    curvature = (sides - 2 * optimum.fun) / _CURVED**2
    fraction = _independent_fraction(equations, recordings, whole.fit(seconds), seconds)
    deviation = 1 / np.sqrt(max(float(whole.counts @ fraction) * curvature, _TINY))
    return Delay(seconds, float(deviation), _gain(blocks, whole, seconds))


def without_delay(samples: Samples, delay: float) -> Samples:
    """Samples with the torque that belongs to their motion; what would lie outside the recording is masked."""
    if delay == 0:
        return samples
    shifted = samples.time + delay
    inside = (shifted >= samples.time[0]) & (shifted <= samples.time[-1])
    spline = scipy.interpolate.make_interp_spline(samples.time, samples.tau, k=3)
    tau = spline(np.clip(shifted, samples.time[0], samples.time[-1]))
    return replace(samples, tau=tau, mask=samples.mask & inside[:, None], usable=samples.usable & inside)


def _misfit(equations: ShiftedTorque, shift: float) -> float:
    """Mean logarithm of the residual deviation over all equations, for weighted least squares."""
    variance = equations.mean_squares(shift, equations.fit(shift))
    used = equations.counts > 0
    return float(np.average(0.5 * np.log(np.maximum(variance[used], _TINY)), weights=equations.counts[used]))


def _independent_fraction(
    equations: Equations, recordings: Sequence[Samples], parameters: Array, delay: float
) -> Array:
    """``(c,)`` independent share of the equations, by the correlation of their residuals."""
    full = np.zeros(equations.model.layout.size)
    full[: len(parameters)] = parameters
    shifted = [without_delay(samples, delay) for samples in recordings]
    residuals = [samples.tau - equations.predict(full, samples) for samples in shifted]
    return effective_fraction(residuals, [samples.mask for samples in shifted])


def _gain(blocks: Sequence[ShiftedTorque], whole: ShiftedTorque, shift: float) -> float:
    """Share by which a shift lowers the squared error of held-out blocks."""
    return 1 - _held_out_error(blocks, whole, shift) / max(_held_out_error(blocks, whole, 0.0), _TINY)


def _held_out_error(blocks: Sequence[ShiftedTorque], whole: ShiftedTorque, shift: float) -> float:
    """Squared error of every block under a fit to all others, in variances of the channels without a shift."""
    scale = np.maximum(whole.mean_squares(0.0, whole.fit(0.0)), _TINY)
    total = 0.0
    for index, block in enumerate(blocks):
        others = ShiftedTorque.sum([*blocks[:index], *blocks[index + 1 :]])
        total += float(np.sum(block.counts * block.mean_squares(shift, others.fit(shift)) / scale))
    return total
