"""Parameters of the calibration sequence. They need no ROS: parameter files and docs are made from them as well."""

import attrs

from inertid_ros.config.identification import RoundsOptions
from inertid_ros.config.schema.option_fields import option


@attrs.frozen
class CalibrateOptions(RoundsOptions):
    """Parameters of the calibration sequence."""

    moved_by: str = option(
        "excitation", "excitation: that node moves the robot; robot: it moves by itself when asked, see move_service",
        choices=("excitation", "robot"),
    )
    move_service: str = option("simulator/move", "std_srvs/Trigger that makes the robot move by itself")
    moving_topic: str = option("simulator/moving", "latched std_msgs/Bool, true while it does")
    plan: str = option("", "plan file of the motion that is fitted; empty lets the excitation node plan it")
    validation_plan: str = option("", "plan file of the held-out motion; empty lets the excitation node plan it")
    confirm: bool = option(False, "show each motion once it is planned, and wait for the service excitation/go")
    speed_scale: float = option(1.0, "plays both motions slower", minimum=0.01, maximum=1.0)
    output_directory: str = option(
        "", "result directory to write, of several rounds a folder with one each; empty leaves it to the identifier"
    )
    tables: bool = option(True, "print the report as tables at the end, on a terminal")
    wait_s: float = option(20.0, "longest wait for the other nodes [s]", minimum=1.0, maximum=3600.0)
