"""Parameters of the replay node. They need no ROS: parameter files and documentation are made from them as well."""

import attrs

from inertid_ros.config.schema.option_fields import option


@attrs.frozen
class ReplayOptions:
    """Parameters of the replay node."""

    bag: str = option("", "bag directory or file to play")
    topics: tuple[str, ...] = option((), "topics to play; empty plays all")
    rate: float = option(1.0, "speed; 2 plays twice as fast", minimum=0.01, maximum=1000.0)
    clock_hz: float = option(100.0, "rate of /clock by the bag's time; 0 publishes none", minimum=0.0, maximum=1000.0)
    wait_s: float = option(10.0, "longest wait for a subscriber on every topic [s]; 0 waits for none", minimum=0.0)
    record: bool = option(False, "start the recorder before the first message and stop it after the last")
