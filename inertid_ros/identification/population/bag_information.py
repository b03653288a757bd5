"""Information of one bag with the noise of its own fit, and the joint information of a robot's bags.

Bodies are shared by all bags of a robot. Friction and offsets of a bag differ from those of the robot by a scatter that
the bags show: its columns are marginalised out of every channel's equations. That is exact where a parameter appears in
one channel alone; of coupled drives it takes the scatter of different channels for independent.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.qr import r_factor
from inertid_ros.identification.information.earlier_equations import EarlierEquations
from inertid_ros.identification.information.information import Channel, Information


@dataclass(frozen=True)
class BagInformation:
    """What one bag tells of a robot.

    Attributes
    ----------
    name : str
        Of the bag.
    day : float
        Date [days].
    information : Information
        Of its samples, without outliers.
    deviation : ndarray, shape (c,)
        Standard deviation of the residual of each channel in the fit of this bag alone.
    effective_counts : ndarray, shape (c,)
        Independent samples per channel.

    Raises
    ------
    ValueError
        Shapes do not fit.
    """

    name: str
    day: float
    information: Information
    deviation: Array
    effective_counts: Array

    def __post_init__(self) -> None:
        wanted = (len(self.information.channels),)
        if self.deviation.shape != wanted or self.effective_counts.shape != wanted:
            raise ValueError(f"{self.name}: expected {wanted[0]} deviations and counts")

    @property
    def share(self) -> Array:
        """``(c,)`` independent share of the samples."""
        return np.minimum(self.effective_counts / np.maximum(self.information.counts, 1), 1.0)

    @property
    def equations(self) -> EarlierEquations:
        """Whitened equations of all channels."""
        R, z = self.information.whitened(np.sqrt(self.share) / self.deviation)
        return EarlierEquations(R, z)

    def with_deviation(self, deviation: Array) -> Information:
        """Information of its independent samples alone, scaled so that residuals have a given deviation ``(c,)``.

        A fit to it counts every equation as independent, and bags of different noise weigh as they should.
        """
        factors = np.sqrt(self.share) * deviation / self.deviation
        counts = np.maximum(np.round(self.effective_counts), 1) * (self.information.counts > 0)
        channels = tuple(
            replace(channel, r_factor=factor * channel.r_factor, count=int(count))
            for channel, factor, count in zip(self.information.channels, factors, counts, strict=True)
        )
        return replace(self.information, channels=channels)


def joint_information(bags: Sequence[BagInformation], changing: np.ndarray, scatter: Array) -> Information:
    """Information of all bags of a robot, bodies shared, changing terms up to their scatter.

    Parameters
    ----------
    changing : ndarray of int, shape (k,)
        Columns of parameters that differ from bag to bag.
    scatter : ndarray, shape (k,)
        Standard deviation of each about the robot's value; zero shares it.

    Raises
    ------
    IdentificationError
        Bags are of different robots or drive terms.
    """
    deviation = np.median([bag.deviation for bag in bags], axis=0)
    return reduce(add, (with_scatter(bag.with_deviation(deviation), changing, scatter, deviation) for bag in bags))


def with_scatter(information: Information, changing: np.ndarray, scatter: Array, deviation: Array) -> Information:
    """Information on the mean of parameters that are normal about it, with everything else as it is.

    Parameters
    ----------
    changing, scatter
        As of :func:`joint_information`.
    deviation : ndarray, shape (c,)
        Standard deviation of the equations' errors per channel.
    """
    of_column = dict(zip(changing.tolist(), scatter.tolist(), strict=True))
    channels = tuple(
        _with_scatter(channel, np.array([of_column.get(int(c), 0.0) for c in channel.columns]), noise)
        for channel, noise in zip(information.channels, deviation, strict=True)
    )
    return replace(information, channels=channels)


def _with_scatter(channel: Channel, scatter: Array, deviation: float) -> Channel:
    """Equations ``A x + A_s e = b`` and ``e / scatter = 0`` with ``e`` eliminated."""
    apart = np.flatnonzero(scatter > 0)
    if not len(apart) or not channel.count:
        return channel
    R, k = channel.r_factor, len(apart)
    above = np.hstack([R[:, apart], R])
    below = np.hstack([np.diag(deviation / scatter[apart]), np.zeros((k, R.shape[1]))])
    return replace(channel, r_factor=r_factor(np.vstack([above, below]))[k:, k:])
