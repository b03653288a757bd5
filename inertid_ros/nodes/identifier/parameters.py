"""Parameters of the identifier node. They need no ROS: parameter files and documentation are made from them as well."""

import attrs

from inertid_ros.config.schema.option_fields import option


@attrs.frozen
class IdentifierOptions:
    """Parameters of the identifier node, beside those of the configuration."""

    urdf: str = option("", "URDF file; empty takes the topic robot_description")
    output_directory: str = option("results", "where result directories are written; empty writes none")
    state_directory: str = option(
        "", "where the last accepted result is kept, which is published again after a restart; empty keeps none"
    )
    automatic: bool = option(False, "identify every recording from the recorder as soon as it is complete")
    live_coverage: bool = option(
        True, "work out once a second what the recording so far determines, about a hundredth of a core"
    )
    keep_recordings: int = option(20, "recordings kept in memory, the oldest go first", minimum=1, maximum=1000)
    timeout_s: float = option(600.0, "longest time for one identification [s]", minimum=1.0, maximum=1e5)
    memory_mb: int = option(0, "address space of the solving process [MiB]; 0 sets no limit", minimum=0, maximum=10**7)
