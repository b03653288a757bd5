"""The demo: calibrate a simulated robot with all nodes as processes of their own, and compare with the truth.

Started by ``make demo`` or ``ros2 run inertid_ros demo``; ``make demo ROBOT=biped`` takes one on force plates. With
``ROBOT=payload`` the calibrated arm then grasps a box while it works, and tells what it holds. The simulator's true
URDF is made wrong by point masses; what it publishes as robot_description is wrong, and the others calibrate it.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType

from inertid_ros.config.yaml_files import load_configuration
from inertid_ros.core.errors import InertidError
from inertid_ros.core.outputs import check_directory, move_directory

from .comparison import Comparison, describe_centre_of_mass, held_out_configurations, print_comparison
from .domain import claim_domain
from .payload import hold_a_box, print_payload
from .processes import NODES, DemoError, Processes

ARMS = ("arm", "payload")
CONFIGURATIONS = {**dict.fromkeys(ARMS, "simulate.yaml"), "biped": "biped.yaml", "humanoid": "humanoid.yaml"}
RESULT = "report.json"
DEMO = "demo"  # kind of output


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; exit status 0 done, 1 a process failed, 2 bad usage, 3 the result was rejected."""
    options = _parse(arguments)
    output = Path(options.output).expanduser().absolute()
    failed = output.with_name(f"{output.name}_failed")
    try:
        for path in (output, failed):
            check_directory(path, DEMO, force=True)
    except InertidError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, _interrupt)
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
    configuration = Path(options.config) if options.config else _share() / "config" / CONFIGURATIONS[options.robot]
    if not configuration.is_file():
        raise DemoError(f"{configuration}: no such parameter file; build the package again")
    base = ["--ros-args", "--params-file", str(configuration)]
    own: dict[str, list[str]] = {
        "simulator": [
            f"perturbation_seed:={options.seed}", f"simulation.seed:={options.seed}",
            f"legged_robot.seed:={options.seed}"
        ],
        "recorder": [f"directory:={work / 'recordings'}"],
        "identifier": [f"output_directory:={work}"],
        "calibrate": [f"output_directory:={work / 'calibration'}", "tables:=false"],
        "gravity_compensation": _locked(configuration),
    }

    def command(name: str, module: Sequence[str]) -> list[str]:
        extra = [word for value in own.get(name, []) for word in ("-p", value)]
        files = base if name != "gravity_compensation" else ["--ros-args"]
        return [sys.executable, *module, *files, *extra]

    nodes = [name for name in NODES if name != "excitation" or options.robot in ARMS]
    with Processes(logs) as processes:
        for name in nodes:
            processes.start(name, command(name, ("-m", f"inertid_ros.nodes.{name}.node")))
        flow = command("calibrate", ("-m", "inertid_ros.nodes.calibrate.node"))
        processes.start("calibrate", flow, own_terminal=True)
        status = processes.wait("calibrate", 600.0)
        if status not in (0, 3):
            raise DemoError(f"the calibration ended with status {status}")
        comparison = Comparison.receive(load_configuration(configuration).robot)
        tracking, payload = "", None
        if status == 0 and options.robot == "arm":
            print("tracking with gravity compensation, either set of parameters ...", flush=True)
            example = _share().parent.parent / "lib" / "inertid_ros" / "gravity_compensation"
            processes.start("gravity_compensation", command("gravity_compensation", (str(example),)))
            if processes.wait("gravity_compensation", 120.0) != 0:
                raise DemoError(f"gravity compensation failed:\n{processes.tail('gravity_compensation')}")
            tracking = processes.tail("gravity_compensation", 2)
        if status == 0 and options.robot == "payload":
            recordings = json.dumps([str(bag) for bag in sorted((work / "recordings").iterdir())])
            own["online"] = [f"result:={work / 'calibration'}", f"recordings:={recordings}"]
            processes.start("online", command("online", ("-m", "inertid_ros.nodes.online.node")))
            payload = hold_a_box(comparison.given, options.seed)
            (work / "payload.json").write_text(payload.answer.payload_json + "\n")
    for file in (work / "calibration").iterdir():
        file.rename(work / file.name)
    (work / "calibration").rmdir()
    report = json.loads((work / RESULT).read_text())
    (work / "given.urdf").write_text(comparison.given.urdf)
    (work / "comparison.json").write_text(json.dumps(comparison.content(report), indent=1) + "\n")
    print_comparison(comparison, report)
    if payload is not None:
        print_payload(payload)
    if options.robot not in ARMS:
        tracking = describe_centre_of_mass(comparison, report, held_out_configurations(comparison, configuration, work))
    print(f"{tracking}\n{time.monotonic() - began:.0f} s in all")
    return status


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo", description="Calibrate a simulated robot.")
    parser.add_argument(
        "--robot", default="arm", choices=CONFIGURATIONS,
        help="arm: seven joints; payload: it then grasps a box; biped: an exoskeleton on two force plates; humanoid: on"
        " one foot",
    )
    parser.add_argument("--output", default="result", help="result directory; that of an earlier demo is replaced")
    parser.add_argument("--seed", type=int, default=0, help="of the point masses, the drives and the noise")
    parser.add_argument("--config", default="", help="parameter file in place of the robot's own in config")
    return parser.parse_args(arguments)


def _share() -> Path:
    from ament_index_python.packages import get_package_share_directory

    return Path(get_package_share_directory("inertid_ros"))


def _locked(configuration: Path) -> list[str]:
    """Parameters of the locked joints."""
    joints = load_configuration(configuration).robot.locked_joints
    values = [f"robot.locked_joints.{joint}:={position}" for joint, position in joints.items()]
    return [f"robot.locked_joint_names:={json.dumps(list(joints))}", *values]


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
