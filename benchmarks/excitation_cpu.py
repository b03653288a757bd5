"""CPU of the excitation node, at rest and in motion, by the rate of the joint states and the command interface.

    PYTHONPATH=benchmarks:test python benchmarks/excitation_cpu.py

A seven-joint arm in a separate process follows the commands exactly. With the action interface, a controller in Python
forwards the goals to it. Figures are shares of one core for all threads of the node, without the planning process.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from studies.own_domain import own_domain
from studies.simulated_panda import MODEL, START
from support.nodes.armed_excitation import ACTIVATE, CONFIGURE
from support.nodes.control_messages import control_messages_environment
from support.nodes.ros_client import RosClient, ros_client_in
from support.paths import SUPPORT
from tables import ROOT, machine, publish, table

from inertid_ros.action import Excite
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.excitation.motions import FourierBasis, LinearTrajectory
from inertid_ros.excitation.plan import plan_of, plan_text
from inertid_ros.msg import ExcitationStatus
from inertid_ros.robot.model import load_model
from inertid_ros.simulation.example_robots import example_urdf

INTERFACES = ("joint_trajectory", "follow_joint_trajectory")
MEASURED_S = 8.0


def write_plan(path: Path) -> None:
    """Write a motion of all joints around the start pose, up to half of the speed limits."""
    model = load_model(example_urdf(), MODEL)
    limits = motion_limits(model)
    basis = FourierBasis(3 * MEASURED_S, 24, 1 / (3 * MEASURED_S))
    shape = np.random.default_rng(0).normal(size=(basis.size, model.joints))
    _, velocity, acceleration = LinearTrajectory(basis, START, shape).sample(np.linspace(0, basis.duration, 4000))
    use = max(np.abs(velocity / limits.velocity).max(), np.abs(acceleration / limits.acceleration).max())
    plan = plan_of(LinearTrajectory(basis, START, 0.5 / use * shape), limits, model_hash=model.hash)
    path.write_text(plan_text(plan))


@contextmanager
def process(arguments: list[str], environment: dict[str, str]) -> Iterator[None]:
    """Run a process in addition to the node."""
    with subprocess.Popen([sys.executable, *arguments], env=environment) as started:
        try:
            yield
        finally:
            started.terminate()


def busy_s(pid: int) -> float:
    """Processor time of all threads of a process so far [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def share(ros: RosClient, pid: int) -> float:
    """Share of one core that a process uses [%]."""
    begin, used = time.monotonic(), busy_s(pid)
    ros.spin(MEASURED_S)
    return 100.0 * (busy_s(pid) - used) / (time.monotonic() - begin)


def measure(interface: str, rate: float) -> tuple[float, float, str]:
    """Shares of a core while armed and while moving, and the state of the motion."""
    extra = control_messages_environment(ROOT / ".pytest_cache" / "control_msgs")
    environment = {**os.environ, **extra}
    parameters = {
        "urdf": str(example_urdf()),
        "robot.locked_joint_names": list(MODEL.locked_joints),
        **{f"robot.locked_joints.{name}": value for name, value in MODEL.locked_joints.items()},
        "command_interface": interface,
        "require_recorder": False,
        "excitation.mounting": "none",
        "excitation.collision.mesh_folders": [str(example_urdf().parents[3])],
        "discovery_s": 60.0,
        "monitor.state_timeout_s": 0.2,  # the arm and the controller are in Python
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        process(["-m", "studies.moved_arm", str(rate)], environment),
        process([str(SUPPORT / "nodes" / "fake_controller.py")], environment)
        if interface == INTERFACES[1]
        else tempfile.TemporaryDirectory(),
        ros_client_in(Path(folder)) as ros,
    ):
        plan = Path(folder) / "plan.yaml"
        write_plan(plan)
        node = ros.start("excitation", parameters, environment=environment)
        status = ros.listen(ExcitationStatus, "excitation/status")
        for transition in (CONFIGURE, ACTIVATE):
            request = ChangeState.Request(transition=Transition(id=transition))
            assert ros.call(ChangeState, "excitation/change_state", request).success, node.log()
        ros.spin(1.0)
        armed = share(ros, node.process.pid)
        goal = ros.send_goal(Excite, "excitation/excite", Excite.Goal(plan_file=str(plan)))
        ended = goal.get_result_async()
        ros.until(lambda: status[-1].state == ExcitationStatus.MOVING or ended.done(), "motion", 60.0)
        ros.spin(1.0)
        moving = share(ros, node.process.pid)
        return armed, moving, ended.result().result.message if ended.done() else "goes on"


def main() -> None:
    """Publish the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", type=float, nargs="+", default=[500.0, 1000.0], help="rates of joint states [Hz]")
    parser.add_argument("--interfaces", nargs="+", default=INTERFACES, choices=INTERFACES)
    arguments = parser.parse_args()
    rows = []
    with own_domain():
        for interface in arguments.interfaces:
            for rate in arguments.rates:
                armed, moving, end = measure(interface, rate)
                rows.append((f"`{interface}`", f"{rate:g}", f"{armed:.0f}", f"{moving:.0f}", end))
                print(rows[-1], flush=True)
    load = os.getloadavg()[0]
    publish(
        "excitation-cpu",
        "## CPU of the excitation node\n\n"
        f"Per cent of one core, `benchmarks/excitation_cpu.py`, {machine()}, load {load:.1f}. Seven joints, a motion at"
        " up to half of the speed limits, `tick_s` 0.005.\n\n"
        + table(("command interface", "joint states [Hz]", "armed", "moving", "motion"), rows),
    )


if __name__ == "__main__":
    main()
