"""What the parts of one long recording share, so that each is prepared as the whole would be."""

from collections.abc import Mapping
from dataclasses import dataclass

from inertid_ros.core.arrays import Array
from inertid_ros.data.cleaning.channel_noise import ChannelNoise
from inertid_ros.data.filtering.bandwidth import Spectrum
from inertid_ros.data.filtering.resampling import EvenGrid


@dataclass(frozen=True)
class SharedByParts:
    """What a part takes from the recording that it belongs to.

    Attributes
    ----------
    spectra : tuple
        Of the joint positions, and of the channel of a free base, where there is one.
    grid : EvenGrid
        Instants of the samples before decimation.
    fast_speeds : ndarray, shape (n + couplings,)
        Of the drives, see :func:`.friction_direction.fast_speeds` [rad/s or m/s].
    noise : mapping of str to ChannelNoise
        Of the channels of joints, with the length of the whole recording.
    """

    spectra: tuple[Spectrum, Spectrum | None]
    grid: EvenGrid
    fast_speeds: Array
    noise: Mapping[str, ChannelNoise]
