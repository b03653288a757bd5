"""Calibrate a simulated arm: the same as calibrate.launch.py with a MuJoCo robot in place of the hardware.

The simulator publishes the robot description that the other nodes use; it is wrong by point masses unless `perturb` is
false, so that there is something to calibrate.
"""

from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription
from launch.substitutions import LaunchConfiguration

from inertid_ros.nodes.launching import ParameterFile, declared, described, flag, node, package_file, text

ARGUMENTS = (
    ("namespace", "", "namespace of all nodes and topics, one for each robot"),
    ("urdf", "", "URDF file of the true robot; empty takes the Panda of example-robot-data"),
    ("perturb", "true", "publish a description that is wrong by point masses; false publishes the truth"),
    ("defaults", package_file("config", "simulate.yaml"), "parameter file that is read first, the package's own"),
    ("config", "", "parameter file that is read after it and may hold only what differs; empty takes none"),
    ("plan", "", "plan.yaml that is moved and fitted, as `inertid excite` wrote it; empty plans a motion"),
    ("validation_plan", "", "validation_plan.yaml that is moved and held out; empty plans a motion"),
    ("confirm", "", "true shows each motion and waits for the service excitation/go; empty leaves it to the files"),
    ("output", "results", "directory of the results; recordings are written below it"),
    ("excitation", "true", "start the node that moves the robot; false where the robot moves by itself"),
    ("calibrate", "true", "start the flow; false only starts the nodes"),
    ("exit", "false", "end everything once the flow has ended; status 1 where it failed or the result was rejected"),
)
PASSED_ON = (
    "namespace", "defaults", "config", "plan", "validation_plan", "confirm", "output", "excitation", "calibrate",
    "exit",
)  # fmt: skip


def generate_launch_description() -> LaunchDescription:
    files = (ParameterFile("defaults"), ParameterFile("config", LaunchConfiguration("defaults")))
    simulator = node("simulator", {"urdf": text("urdf"), "perturb": flag("perturb")}, files)
    calibrate = IncludeLaunchDescription(
        package_file("launch", "calibrate.launch.py"),
        # The flow reads the description from the simulator's topic, as it would from a robot's.
        launch_arguments=[("urdf", ""), *((name, LaunchConfiguration(name)) for name in PASSED_ON)],
    )
    return described(__file__, [*declared(ARGUMENTS), simulator, calibrate])
