"""Options of motions by direction combinations."""

import attrs

from inertid_ros.config.schema.option_fields import option


@attrs.frozen
class CombinationOptions:
    """How a motion of direction combinations is planned ([Naveen2019]_ sec. 5)."""

    interval_s: float = option(1.0, "of each interval [s]", minimum=0.05, maximum=600.0)
    offered: int = option(
        256, "combinations to choose from, at most; n joints have 2^(n-1)", minimum=2, maximum=100_000
    )
    most: int = option(67, "intervals kept at most; 0 keeps what pruning keeps", minimum=0, maximum=100_000)
    neutral: int = option(5, "intervals in a row that pruning keeps without gain", minimum=0, maximum=1000)
    significant: float = option(
        1 / 300, "singular values count from this fraction of the largest on", minimum=1e-12, maximum=1.0
    )
    velocity_reward: float = option(
        0.003, "weight of one over the mean squared velocity beside the condition number [rad^2/s^2]",
        minimum=0.0, maximum=1e6,
    )
    wheel_range: float = option(
        9.42477796076938, "angle that every reaction wheel turns in an interval [rad]", minimum=1e-6, maximum=1e6
    )
    orders: int = option(8, "random orders of the combinations that are tried", minimum=1, maximum=10_000)
    starts: int = option(20, "random seeds tried per order, before and after pruning", minimum=1, maximum=100_000)
    iterations: int = option(
        40, "of sequential quadratic programming after pruning; before it a quarter", minimum=0, maximum=100_000
    )
    samples: int = option(6, "instants per interval at which the cost is evaluated", minimum=2, maximum=1000)
