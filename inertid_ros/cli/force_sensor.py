"""``inertid force-sensor``: identify the load and the bias of a force-torque sensor."""

import argparse
from pathlib import Path

import numpy as np
import pinocchio as pin
import yaml

from inertid_ros.cli.printing import deliver, print_table, quantity_row
from inertid_ros.config.configuration import Configuration
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.outputs import check_file, write_file
from inertid_ros.data.files.loading import load_recording
from inertid_ros.data.preparation.recorded_channels import joint_columns
from inertid_ros.data.recording import Recording
from inertid_ros.payload.force_sensor import ForceSensorLoad, identify_force_sensor, sensor_motion
from inertid_ros.robot.model import RobotModel, load_model, refuse_carried

from .settings import configuration, inputs


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.output:
        check_file(options.output, options.force, inputs(options))
    if bool(options.urdf) != bool(options.frame):
        raise RecordingError("give --urdf and --frame together; this frame of the URDF gives the pose of the sensor")
    config = configuration(options, Configuration)
    model = load_model(Path(options.urdf), config.robot) if options.urdf else None
    gravity = np.array(config.robot.gravity, dtype=float)
    motions = []
    for path in options.recordings:
        recording = load_recording(path, config.topics, model.recorded_joints if model else None, config.prepare.stamps)
        motions.append(sensor_motion(recording, options.sensor, _poses(recording, model, options.frame), gravity))
    load = identify_force_sensor(motions)
    text = _yaml(load, options.frame or "SENSOR_FRAME", gravity)
    if options.output:
        write_file(options.output, text.encode(), options.force)
    return deliver(options, load.content(), lambda: _print(load), options.output, load.notices)


def _poses(recording: Recording, model: RobotModel | None, frame: str) -> Array:
    """Poses ``(N, 7)`` of the sensor: as recorded, or computed from a URDF frame and the joint positions."""
    if model is None:
        if recording.base_pose is None:
            raise RecordingError(
                f"{recording.name}: lacks the pose of the sensor; give --urdf URDF --frame FRAME, or name the topic of"
                " its pose (--set topics.pose=TOPIC)")
        return recording.base_pose
    if model.free:
        raise RecordingError(
            "robot.base: on a free base, joint positions do not give the sensor's pose; omit robot.base, or omit --urdf"
            " to use the recorded pose")
    if not model.pinocchio.existFrame(frame):
        raise RecordingError(f"the URDF has no frame '{frame}'; --frame is one of {', '.join(model.link_names)}")
    refuse_carried(model)
    data, index = model.pinocchio.createData(), model.pinocchio.getFrameId(frame)
    position = recording.position[:, joint_columns(recording, model)]
    poses = np.empty((len(position), 7))
    for row, q in enumerate(position):
        pin.forwardKinematics(model.pinocchio, data, q)
        poses[row] = pin.SE3ToXYZQUAT(pin.updateFramePlacement(model.pinocchio, data, index))
    return poses


def _print(load: ForceSensorLoad) -> None:
    names = {"mass": ["mass [kg]"], "com": [f"com {axis} [m]" for axis in "xyz"],
        "bias": [f"bias {quantity} {axis} [N or N m]" for quantity in ("force", "torque") for axis in "xyz"],
        "tilt": [f"tilt {axis} [rad]" for axis in "xyz"]}
    rows = [quantity_row(name, quantity, digits=5) for key, texts in names.items()
        for name, quantity in zip(texts, load.quantities(key), strict=True)]
    print_table("Load and bias of the sensor, in the sensor's axes", ("", "value", "deviation", "95 % interval"), rows)
    if load.inertia is None:
        print("inertia: not identifiable from this motion; turn the tool faster, and record at 50 Hz or more")
    else:
        print(f"inertia about the centre of mass [kg m^2]: {np.array2string(load.inertia, precision=3)}")
        print(f"with standard deviations: {np.array2string(load.deviations['inertia'], precision=2)}")


def _yaml(load: ForceSensorLoad, frame: str, gravity: Array) -> str:
    """Return YAML with all results, and with parameters for controllers that use the results."""
    weight = load.mass * float(np.linalg.norm(gravity))
    offset, torque = (dict(zip("xyz", (-part).tolist(), strict=True)) for part in (load.bias[:3], load.bias[3:]))
    sections = {
        "Identified load and bias; SI units, in the axes of the sensor": {"load": load.content()},
        "For force_torque_sensor_broadcaster: offset that it adds to the measurement": {
            "force_torque_sensor_broadcaster": {"ros__parameters": {"offset": {"force": offset, "torque": torque}}}}}
    compensation = {"frame": {"id": frame}, "CoG": {"pos": load.com.tolist(), "force": weight}}
    if load.reversed:
        sections["For admittance_controller: gravity compensation"] = {
            "admittance_controller": {"ros__parameters": {"gravity_compensation": compensation}}}
    else:
        sections["No parameters for admittance_controller, which needs a sensor that reads the weight downwards: negate"
            " the wrench, and identify again"] = {}
    dumped = {title: yaml.safe_dump(content, sort_keys=False) if content else "" for title, content in sections.items()}
    return "".join(f"# {title}.\n{text}" for title, text in dumped.items())
