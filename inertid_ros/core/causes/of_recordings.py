"""Causes that lie in a recording or in the motion that was recorded."""

from collections.abc import Mapping

from .cause import Cause, cause

_LEFT_OUT = "these samples are left out"

SYMPTOMS: Mapping[str, Mapping[str, Cause]] = {
    "Recorded values are missing, jump, repeat, or have steps": {
        "spikes": cause("single samples are far off the rest", f"{_LEFT_OUT}; check wiring, driver and network"),
        "dropouts": cause("values are missing", f"{_LEFT_OUT}; check driver and network"),
        "gaps": cause(
            "the stamps show that samples were lost",
            "short gaps are bridged and left out of the fit, long ones split the recording; record on the robot's own"
            " computer, or over a faster network",
        ),
        "stuck_channel": cause("a channel repeats its last value", f"{_LEFT_OUT}; read the sensor at its own rate"),
        "coarse_channel": cause("a channel is quantised coarsely", "record a larger motion or a finer channel"),
        "wrapped_angle": cause("the angle is wrapped at a full turn", "full turns are added, nothing needs to be done"),
    },
    "Stamps are out of order, in another unit, or the recording is too short": {
        "mixed_clocks": cause("stamps come from different clocks", "stamp all messages by one clock"),
        "stamp_order": cause(
            "stamps are out of order or repeat",
            "publish from one thread, and no faster than the clock of the stamps runs",
        ),
        "repeated_states": cause(
            "states are published again before there are new ones",
            f"{_LEFT_OUT}; publish at the rate at which the driver reads its hardware",
            positions="they are filtered as they are; read positions at the rate at which they are published",
        ),
        "arrival_times": cause(
            "times are those of arrival, not of measurement",
            "let the publisher stamp its messages",
            scatter="even ones are taken; let the driver stamp states when it reads them",
        ),
        "time_unit": cause("stamps are not in seconds", "divide the stamps by {factor} (they look like {unit})"),
        "short_recording": cause(
            "the recording is too short", "record longer, so that every joint goes there and back several times"
        ),
    },
    "Positions do not fit the URDF": {
        "position_unit": cause(
            "positions are not in radians or metres",
            "convert the positions to {wanted} (they look like {unit})",
            by_effort="convert the positions to radians",
        ),
        "position_offset": cause(
            "the zero of the joint differs from the URDF's",
            "subtract {turn} degrees from the positions of {joint}, or correct its <origin> in the URDF",
        ),
        "beyond_limits": cause(
            "positions lie outside the limits of the URDF", "correct the limits of the URDF or the positions"
        ),
        "beyond_velocity": cause(
            "a joint moves faster than the URDF allows",
            "correct the limit in the URDF (limits.velocity: {{{joint}: {speed}}} for planning), or the stamps",
        ),
        "limits_unit": cause(
            "limits of the URDF look like another unit",
            "multiply them by {factor} in the URDF; for planning, {option} replaces them",
        ),
        "locked_joint_moves": cause(
            "a joint that is locked, by robot.locked_joints or because others mimic it, moves",
            "take {joint} out of robot.locked_joints, correct its position there, or hold it while recording",
            mimicked="hold {joint} while recording, or delete <mimic> of {followers} from the URDF and record them too:"
            " joints that mimic others are not identified with them",
        ),
    },
    "Efforts do not fit the URDF: the error of the URDF as given is about 100 % or above, or masses come out absurd": {
        "effort_sign": cause(
            "the effort has the opposite sign", "set robot.effort_scale to {scales}, or correct the driver"
        ),
        "effort_unit": cause("the effort is in another unit", "set robot.effort_scale to {scales}"),
        "effort_current": cause(
            "the effort is a motor current, or has the wrong gain",
            "set robot.effort_scale to gear ratio times torque constant of every joint",
            estimated="set robot.effort_scale to gear ratio times torque constant of every joint (about {scales})",
        ),
        "undeclared_load": cause(
            "the robot carries what the URDF does not know",
            "the result holds it; add it to the URDF, so that collisions and limits know it too",
        ),
        "effort_exchange": cause(
            "the efforts of joints are exchanged",
            "exchange the efforts of {one} and {other} in the driver or the recording",
        ),
        "joint_exchange": cause(
            "the names of joints are exchanged",
            "exchange the names {one} and {other} in the driver or the recording",
            by_limits="exchange the names {one} and {other} if they are exchanged, or correct the limits of the URDF",
        ),
        "gravity_compensated": cause(
            "gravity has been taken out of the effort",
            "record the whole torque of the joints, or set robot.gravity to [0, 0, 0] and trust no mass",
        ),
        "lacks_weight": cause(
            "the effort of a joint is far below the weight that it carries",
            "set robot.effort_scale of {joint} (gear ratio times torque constant), or, where a spring or counterweight"
            " carries it, hold it with robot.locked_joints",
        ),
        "gravity_direction": cause("gravity points elsewhere in the root frame", "set robot.gravity to {vector}"),
        "no_effort": cause(
            "the joint reports no usable effort",
            "their equations are left out, so that their drives, and bodies after them, are known less well or not"
            " at all; enable their effort interface, or lock them (robot.locked_joints)",
        ),
        "delay": cause(
            "effort and motion are reported of different instants",
            "stamp both alike; identify.remove_delay takes out small delays",
            too_large="stamp both alike, and check signs of effort; nothing was shifted",
            removed="it was shifted back (identify.remove_delay); controllers meet the delay all the same",
        ),
        "counterbalance": cause(
            "a spring or counterweight carries a part of what is on the joint",
            "declare it: robot.terms: {{balance: {{joint: {joint}, shape: counterbalance}}}}, or its formula; otherwise"
            " the bodies hold it",
        ),
        "coupling": cause(
            "the effort follows the speed of another joint: their drives are coupled",
            "declare the drive: robot.couplings: {drive}",
        ),
    },
    "Parameters stay at the URDF's values, or their intervals are wide": {
        "little_motion": cause("the joint hardly moves", "excite it too, or lock it with robot.locked_joints"),
        "lockstep": cause(
            "joints move in proportion to one another",
            "move each joint with frequencies or phases of its own (inertid excite plans such a motion)",
        ),
        "not_excited": cause(
            "the motion cannot show all parameters",
            positions="widen limits.position, which is narrowest for '{joint}', where there is space",
            motion="plan a motion of half the base frequency and twice the duration (excitation.base_frequency_hz,"
            " excitation.duration_s), or from another start (--start)",
            room="give the motion more room where it is safe ({option}), or plan from another start (--start)",
            ranges="give more range where there is space (limits.position, limits.position_margin, the URDF's limits),"
            " or expect values near the URDF's for them",
            speeds="give more speed where the robot has it (limits.velocity, limits.acceleration), or expect values"
            " near the URDF's for them",
            geometry="expect values near the URDF's for them, or leave them out of the criterion"
            " (excitation.kept_parameters)",
        ),
    },
    "A plan is made, but nobody has said what is below the robot": {
        "unknown_floor": cause(
            "the motion may meet a floor or table that nobody stated",
            "set excitation.floor_m, or excitation.mounting: none where nothing is below the robot",
        ),
    },
}
"""Symptom to its causes, by name."""
