"""Calibrate a simulated arm: calibrate.launch.py with a MuJoCo robot in place of the hardware.

The simulator publishes the robot description for the other nodes. Unless `perturb` is false, this description has
point masses as errors, so that the calibration has errors to correct.
"""

from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription
from launch.substitutions import LaunchConfiguration

from inertid_ros.nodes.launching import ParameterFile, declared, described, flag, node, package_file, text

ARGUMENTS = (
    ("namespace", "", "namespace of all nodes and topics, one for each robot"),
    ("urdf", "", "URDF file of the true robot; empty takes the Panda of example-robot-data"),
    ("perturb", "true", "publish a description with point masses as errors; false publishes the truth"),
    ("defaults", package_file("config", "simulate.yaml"), "first parameter file; default: the file of the package"),
    ("config", "", "parameter file that is read after it, with the values that differ; may be empty"),
    ("plan", "", "plan.yaml of the fitted motion, written by `inertid excite`; empty plans a motion"),
    ("validation_plan", "", "validation_plan.yaml of the held-out motion; empty plans a motion"),
    ("confirm", "", "true shows each motion and waits for the service excitation/go; empty takes it from the files"),
    ("output", "results", "directory of the results; recordings are written below it"),
    ("excitation", "true", "start the node that moves the robot; false if the robot moves by itself"),
    ("calibrate", "true", "start the flow; false only starts the nodes"),
    ("exit", "false", "end all nodes once the flow has ended; status 1 if it failed or the result was rejected"),
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
        # The flow reads the description from the topic of the simulator, as with a real robot.
        launch_arguments=[("urdf", ""), *((name, LaunchConfiguration(name)) for name in PASSED_ON)],
    )
    return described(__file__, [*declared(ARGUMENTS), simulator, calibrate])
