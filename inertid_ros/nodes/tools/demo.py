"""The demo: calibrate a simulated robot with all nodes as separate processes, and compare the result with the truth.

Start the demo by ``make demo`` or ``ros2 run inertid_ros demo``. ``make demo ROBOT=biped`` calibrates a robot on force
plates, ``ROBOT=space`` a satellite with two arms and reaction wheels by its momentum. With ``ROBOT=payload``, the
calibrated arm then grasps a box while it works, and the online node identifies the box. The simulator publishes a
robot_description with added point masses, and the other nodes calibrate the robot.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from ament_index_python.packages import get_package_share_directory
from std_msgs.msg import String

from inertid_ros.cli.printing import number, print_errors, print_table
from inertid_ros.config.robot import RobotOptions
from inertid_ros.config.yaml_files import load_configuration
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import InertidError
from inertid_ros.core.inertial_parameters import geodesic_distance, mass_com_inertia
from inertid_ros.core.outputs import check_directory, move_directory
from inertid_ros.data.files.bag_reading import read_bag
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.msg import InertialParameters
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.ros.received_parameters import from_inertial_parameters

from .payload_demo import DemoNode, hold_a_box, print_payload
from .processes import SERVING_NODES, Processes, claim_domain

ARMS, LEGGED = ("arm", "payload"), ("biped", "humanoid")
CONFIGURATIONS = {
    **dict.fromkeys(ARMS, "simulate.yaml"), **{robot: f"{robot}.yaml" for robot in LEGGED}, "space": "space.yaml"}
DEMO = "demo"  # type of the output directory
_TRUTH_TIMEOUT_S = 10.0
_SHARE = Path(get_package_share_directory("inertid_ros"))
_EXECUTABLES = _SHARE.parent.parent / "lib" / "inertid_ros"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; exit status 0 done, 1 a process failed, 2 bad usage, 3 result rejected, 130 interrupted."""
    options = _parse(arguments)
    output = Path(os.path.expanduser(options.output)).absolute()
    failed = output.with_name(f"{output.name}_failed")
    try:
        for path in (output, failed):
            check_directory(path, DEMO, force=True)
    except InertidError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ExitStack() as stack:
        domain = stack.enter_context(claim_domain())
        os.environ["ROS_DOMAIN_ID"], os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = str(domain), "LOCALHOST"
        output.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=".demo.", dir=output.parent))
        try:
            status = _run(options, work)
            move_directory(work, output, DEMO, force=True)
        except KeyboardInterrupt:
            print("\ninterrupted; all processes have ended", file=sys.stderr)
            shutil.rmtree(work, ignore_errors=True)
            return 130
        except InertidError as error:
            with suppress(InertidError):
                move_directory(work, failed, DEMO, force=True)
                work = failed
            print(f"error: {error}\nlogs: {work / 'logs'}", file=sys.stderr)
            return 1
        print(f"\nresult: {output}")
        return status


def _run(options: argparse.Namespace, work: Path) -> int:
    began = time.monotonic()
    logs = work / "logs"
    logs.mkdir()
    configuration = Path(options.config or _SHARE / "config" / CONFIGURATIONS[options.robot])
    if not configuration.is_file():
        raise InertidError(f"{configuration}: no such parameter file; build the package again")
    parameters = {
        "simulator": [f"{key}seed:={options.seed}" for key in ("perturbation_", "simulation.", "legged_robot.")],
        "recorder": [f"directory:={work / 'recordings'}"],
        "identifier": [f"output_directory:={work}"]}
    last_line, payload = "", None
    with Processes(logs) as processes:
        for name in SERVING_NODES:
            if name != "excitation" or options.robot not in LEGGED:  # legged robots move by themselves
                processes.start(name, _command(name, configuration, parameters.get(name, ())))
        flow = _command("calibrate", configuration, (f"output_directory:={work / 'calibration'}", "tables:=false"))
        processes.start("calibrate", flow, own_terminal=True)
        status = processes.wait("calibrate", 600.0)
        if status not in (0, 3):
            raise InertidError(f"the calibration ended with status {status}")
        given, truth = receive_truth(load_configuration(configuration).robot)
        if status == 0 and options.robot == "arm":
            last_line = _track(processes, configuration)
        if status == 0 and options.robot == "payload":
            recordings = json.dumps([str(bag) for bag in sorted((work / "recordings").iterdir())])
            values = (f"result:={work / 'calibration'}", f"recordings:={recordings}")
            processes.start("online", _command("online", configuration, values))
            payload = hold_a_box(given, options.seed)
            (work / "payload.json").write_text(payload[1].payload_json + "\n")
    for file in (work / "calibration").iterdir():
        file.rename(work / file.name)
    (work / "calibration").rmdir()
    report = json.loads((work / "report.json").read_text())
    (work / "given.urdf").write_text(given.urdf)
    estimates = {link["name"]: link["parameters"] for link in report["links"]}
    calibrated = np.array([estimates[name] for name in given.link_names])
    bodies = {"truth": truth, "given": given.body_prior, "calibrated": calibrated}
    content = comparison(given.link_names, bodies, report)
    (work / "comparison.json").write_text(json.dumps(content, indent=1) + "\n")
    print_comparison(content, report)
    if payload is not None:
        print_payload(*payload)
    if options.robot in LEGGED:
        last_line = describe_centre_of_mass(given, bodies, configuration, work)
    print(f"{last_line}\n{time.monotonic() - began:.0f} s in total")
    return status


def _command(name: str, configuration: Path, parameters: Iterable[str]) -> list[str]:
    singles = (word for value in parameters for word in ("-p", value))
    return [sys.executable, str(_EXECUTABLES / name), "--ros-args", "--params-file", str(configuration), *singles]


def _track(processes: Processes, configuration: Path) -> str:
    """Run the gravity compensation example with given and calibrated parameters, and return its last lines."""
    print("tracking with gravity compensation, with both sets of parameters ...", flush=True)
    name = "gravity_compensation"
    command = [sys.executable, str(_EXECUTABLES / name), "--ros-args"]
    joints = load_configuration(configuration).robot.locked_joints
    for joint, position in joints.items():
        command += ["-p", f"robot.locked_joints.{joint}:={position}"]
    processes.start(name, [*command, "-p", f"robot.locked_joint_names:={json.dumps(list(joints))}"])
    if processes.wait(name, 120.0) != 0:
        raise InertidError(f"gravity compensation failed:\n{processes.tail(name)}")
    return processes.tail(name, 2)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo", description="Calibrate a simulated robot.")
    parser.add_argument(
        "--robot", default="arm", choices=CONFIGURATIONS,
        help="arm: seven joints; payload: arm that grasps a box; biped: exoskeleton on two force plates; humanoid: on"
        " one foot; space: satellite with two arms and reaction wheels")
    parser.add_argument("--output", default="result", help="result directory; an earlier demo's result is replaced")
    parser.add_argument("--seed", type=int, default=0, help="seed of the point masses, the drives and the noise")
    parser.add_argument("--config", default="", help="parameter file instead of the robot's file in config")
    return parser.parse_args(arguments)


def receive_truth(robot: RobotOptions) -> tuple[RobotModel, Array]:
    """Return the robot that the simulator describes, and the true bodies ``(nb, 10)``, from latched topics.

    Raises InertidError if the simulator does not publish both.
    """
    with DemoNode() as demo:
        description = demo.listen(String, "robot_description")
        truth = demo.listen(InertialParameters, "simulator/true_parameters")
        missing = "the simulator does not publish its truth; see its log"
        demo.until(lambda: description and truth, missing, _TRUTH_TIMEOUT_S)
    return load_model(description[0].data, robot), from_inertial_parameters(truth[0]).bodies


def comparison(names: Sequence[str], bodies: Mapping[str, Array], report: Mapping[str, Any]) -> dict[str, Any]:
    """Return torque errors, and links in every set of bodies ``(nb, 10)`` compared with ``truth``, as plain data."""
    links = []
    for index, name in enumerate(names):
        entry: dict[str, Any] = {"name": name}
        for label, values in bodies.items():
            mass, com, _ = mass_com_inertia(values[index])
            distance = float(geodesic_distance(values[index], bodies["truth"][index]))
            entry[label] = {"mass": float(mass), "com": com.tolist(), "geodesic_distance_to_truth": distance}
        links.append(entry)
    section = "validation" if "validation" in report else "train"
    return {
        "relative_error": report[section]["relative_error"],
        "prior_relative_error": report["prior"][section]["relative_error"],
        "links": links}


def print_comparison(content: Mapping[str, Any], report: Mapping[str, Any]) -> None:
    """Print torque errors, and compare every link as given and as calibrated with the truth."""
    print()
    print_errors(report)
    rows = []
    for link in content["links"]:
        true, given, calibrated = link["truth"], link["given"], link["calibrated"]
        shift = [1e3 * float(np.linalg.norm(np.subtract(x["com"], true["com"]))) for x in (given, calibrated)]
        masses = f"{number(given['mass'])} → {number(calibrated['mass'])}"
        distances = f"{given['geodesic_distance_to_truth']:.3f} → {calibrated['geodesic_distance_to_truth']:.3f}"
        rows.append((link["name"], number(true["mass"]), masses, f"{shift[0]:.1f} → {shift[1]:.1f}", distances))
    header = ("link", "true mass [kg]", "mass [kg]", "CoM off by [mm]", "geodesic distance to the truth")
    print_table("Links against the simulated truth, URDF as given → calibrated", header, rows)
    before, after = content["prior_relative_error"], content["relative_error"]
    quantity = report["train"]["quantity"]
    print(f"held-out {quantity} error {100 * before:.2f} % → {100 * after:.2f} %, {before / after:.1f} times smaller")
    smallest = min(link["min_pseudo_inertia_eigenvalue"] for link in report["links"])
    print(f"every link physically consistent: {'yes' if smallest > 0 else 'NO'} (smallest eigenvalue {smallest:.2g})")


def describe_centre_of_mass(model: RobotModel, bodies: Mapping[str, Array], configuration: Path, work: Path) -> str:
    """Return a line on the error of the whole robot's centre of mass in the last recording, which is held out."""
    options = load_configuration(configuration)
    bag = sorted((work / "recordings").iterdir())[-1]
    samples = prepare(read_bag(bag, options.topics, model.joint_names), model, options.prepare)
    centres = {}
    for label, values in bodies.items():
        kinematics = model.with_bodies(values)
        data = kinematics.createData()
        configurations = samples.q[samples.usable]
        centres[label] = np.array([pin.centerOfMass(kinematics, data, q).copy() for q in configurations])
    errors = (centres[label] - centres["truth"] for label in ("given", "calibrated"))
    before, after = (float(np.sqrt(np.mean(np.sum(error**2, axis=1)))) for error in errors)
    return (
        f"centre of mass off by {1e3 * before:.1f} mm → {1e3 * after:.2f} mm on held-out data,"
        f" {before / after:.1f} times closer; total mass {bodies['calibrated'][:, 0].sum():.2f} kg of"
        f" {bodies['truth'][:, 0].sum():.2f} kg")


if __name__ == "__main__":
    sys.exit(main())
