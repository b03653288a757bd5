"""How a recording becomes samples."""

from dataclasses import dataclass, field

from inertid_ros.data.preparation.external_wrenches import WrenchOptions
from inertid_ros.data.preparation.free_base import BaseMotionOptions

from .options import option


@dataclass(frozen=True)
class PrepareOptions:
    """How a recording becomes samples. The defaults suit recordings never seen before."""

    cutoff_hz: float = option(
        0.0, "cutoff of the low-pass on every channel [Hz]; 0 chooses it from the motion", minimum=0.0, maximum=1e4
    )
    filter_order: int = option(
        4, "order of the Butterworth low-pass, which runs forwards and backwards", minimum=1, maximum=10
    )
    rate_hz: float = option(
        0.0, "sample rate of the result [Hz]; 0 keeps 20 samples per period of the cutoff", minimum=0.0, maximum=1e5
    )
    motion_from: str = option(
        "position",
        "measured channel that velocity and acceleration come from: position differentiates twice, velocity once,"
        " acceleration takes both as measured",
        choices=("position", "velocity", "acceleration"),
    )
    skip_start_s: float = option(0.0, "cut from the start of every recording [s]", minimum=0.0, maximum=1e6)
    skip_end_s: float = option(0.0, "cut from the end of every recording [s]", minimum=0.0, maximum=1e6)
    max_gap_periods: float = option(
        4.0, "a longer break in the stamps splits the recording, in sample periods", minimum=1.5, maximum=1e3
    )
    edge_periods: float = option(
        1.0, "left out at the ends of each piece, where the filter settles, in periods of the cutoff",
        minimum=0.0, maximum=100.0,
    )
    trim_transients: bool = option(
        True, "leave out a jerk at start-up or stop: ends that accelerate several times harder than all the rest"
    )
    low_speed_fraction: float = option(
        0.03, "share of a joint's fast speed below which its friction has no sure sign and its equations are left out",
        minimum=0.0, maximum=1.0,
    )
    base: BaseMotionOptions = field(default_factory=BaseMotionOptions)
    wrenches: WrenchOptions = field(default_factory=WrenchOptions)
