"""The options of every node, as the node declares them. It needs neither ROS nor numerics."""

from collections.abc import Iterator, Mapping

from inertid_ros.config.configuration import EFFECTS as OF_CONFIGURATION
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.schema.effects import ABSENT, GIVEN, only
from inertid_ros.config.schema.option_fields import Option, options
from inertid_ros.nodes.adaptation.parameters import AdaptationNodeOptions
from inertid_ros.nodes.calibrate.parameters import CalibrateOptions
from inertid_ros.nodes.excitation.parameters import ExcitationNodeOptions, MotionOptions
from inertid_ros.nodes.identifier.parameters import IdentifierOptions
from inertid_ros.nodes.measure_payload.parameters import MeasurePayloadOptions
from inertid_ros.nodes.online.parameters import OnlineNodeOptions
from inertid_ros.nodes.recorder.parameters import RecorderOptions
from inertid_ros.nodes.replay.parameters import ReplayOptions
from inertid_ros.nodes.simulator.parameters import FaultOptions, SimulatorOptions

NODES: Mapping[str, tuple[tuple[type, str], ...]] = {
    "excitation": ((ExcitationNodeOptions, ""), (MotionOptions, "")),
    "recorder": ((RecorderOptions, ""),),
    "identifier": ((IdentifierOptions, ""), (Configuration, "")),
    "online": ((OnlineNodeOptions, ""),),
    "calibrate": ((CalibrateOptions, ""),),
    "measure_payload": ((MeasurePayloadOptions, ""),),
    "replay": ((ReplayOptions, ""),),
    "simulator": ((SimulatorOptions, ""), (FaultOptions, "fault.")),
    "adaptation": ((AdaptationNodeOptions, ""),),
}
"""Node to the trees of its parameters and their prefixes."""


def declared(node: str) -> Iterator[Option]:
    """Every parameter of a node; those of named elements with ``<name>`` in the key."""
    for tree, prefix in NODES[node]:
        yield from options(tree, prefix)


_WRENCHES = dict.fromkeys(("wrenches", "odometry", "pose", "twist", "imu"), GIVEN)

EFFECTS = (
    *OF_CONFIGURATION,
    only("move_service moving_topic", {"moved_by": ("robot",)}),
    only("plan validation_plan confirm speed_scale", {"moved_by": ("excitation",)}),
    only("perturbation perturbation_seed", {"perturb": (True,)}),
    only("wanted_deviation least_gain", {"rounds": GIVEN}),
    only("tare_s tare_limit_n contact_on_n contact_off_n", {"wrenches": GIVEN}),
    only("max_wrench_gap_s", _WRENCHES),
    only("time_constant_s", {"window_s": ABSENT}),
    only("legged_robot", {"legged_robot.robot": GIVEN}),
    only("urdf start controller simulation", {"legged_robot.robot": ABSENT}),
    only("fault.silent_plates fault.frozen_plates fault.reversed_plates", {"legged_robot.robot": GIVEN}),
    only("limits.effort limits.effort_fraction", {"control.effort_fraction": ()}),
    only("control.speed control.dead_zone", {"control.law": ("natural", "pullback")}),
)
"""Parameters that have an effect beside certain others only."""
