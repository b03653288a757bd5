"""Parameters of the payload flow. They need no ROS: parameter files and documentation are made from them as well."""

import attrs

from inertid_ros.config.schema.option_fields import option


@attrs.frozen
class MeasurePayloadOptions:
    """Parameters of the flow that moves a robot to identify what it holds."""

    frame: str = option("", "link that holds the payload, in whose frame it is; empty takes the online node's")
    duration_s: float = option(
        8.0, "of the motion, in place of excitation.duration_s, and of the joint states that are taken [s]",
        minimum=1.0, maximum=600.0,
    )
    speed_scale: float = option(1.0, "plays the motion slower", minimum=0.01, maximum=1.0)
    reference: tuple[str, ...] = option(
        (), "recordings of the same session without payload; empty takes the online node's"
    )
    wait_s: float = option(20.0, "longest wait for the other nodes [s]", minimum=1.0, maximum=3600.0)
