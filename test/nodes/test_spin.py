"""What every node does before it starts."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")

from rcl_interfaces.msg import Parameter, ParameterValue  # noqa: E402
from rcl_interfaces.srv import SetParameters, SetParametersAtomically  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from support.nodes.processes import NodeProcess  # noqa: E402
from support.nodes.two_links import URDF  # noqa: E402

from inertid_ros.nodes import MODULES, spin  # noqa: E402
from inertid_ros.nodes.spin import TickedSpin, refuse_unknown_parameter_types  # noqa: E402


def run_script(text: str, folder: Path) -> tuple[int, str]:
    """Exit status and output of a script whose process need not import ROS 2 first."""
    file = folder / "script.py"
    file.write_text(text)
    process = NodeProcess("script", folder, script=(str(file),))
    return process.process.wait(60), process.log()


@pytest.mark.parametrize("name", ["calibrate", "recorder"])
def test_too_little_address_space_is_told(name: str, tmp_path: Path):
    """As `ulimit -v` sets it after all modules are loaded; without the check the middleware may stand still."""
    limited = f"""
import resource, sys
from {MODULES[name]} import main
resource.setrlimit(resource.RLIMIT_AS, (900 * 2**20, -1))
sys.exit(main())
"""
    told = "error: the address space is limited to 900 MiB, and a node needs 1024; raise ulimit -v\n"
    assert run_script(limited, tmp_path) == (2, told)


@pytest.mark.parametrize("pause_s", [0.001, 0.0])
def test_repeated_interruptions_end_with_status_0(pause_s: float):
    """A node gets Ctrl-C in `ros2 launch` twice: the second may come as the first is handled, or while Python ends."""
    script = """
import sys
from rclpy.node import Node
from inertid_ros.nodes.spin import run_node

class Quiet(Node):
    def __init__(self):
        super().__init__("quiet")
        print("ready", flush=True)

sys.exit(run_node(Quiet))
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as node:
        assert node.stdout is not None and any(line == "ready\n" for line in node.stdout)  # the middleware prints, too
        end = time.monotonic() + 30.0
        while node.poll() is None and time.monotonic() < end:
            node.send_signal(signal.SIGINT)
            time.sleep(pause_s)
        assert node.poll() == 0


def test_a_node_ends_although_the_middleware_hangs(tmp_path: Path):
    """As Fast DDS did once, which then keeps Python's lock."""
    script = """
import ctypes, sys
from rclpy.node import Node
from inertid_ros.nodes.spin import run_node

class Hanging(Node):
    done = True
    def __init__(self):
        super().__init__("hanging")
        print("made")
    def destroy_node(self):
        ctypes.PyDLL(None).sleep(600)

sys.exit(run_node(Hanging))
"""
    status, printed = run_script(script, tmp_path)
    assert status == 0 and "made" in printed, printed


def test_a_callback_that_never_ends_does_not_hold_up_the_end(tmp_path: Path):
    script = """
import os, signal, sys, time
from rclpy.node import Node
from inertid_ros.nodes.spin import run_node

class Busy(Node):
    def __init__(self):
        super().__init__("busy")
        self.create_timer(0.0, self.work)
    def work(self):
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            time.sleep(0.01)

sys.exit(run_node(Busy))
"""
    status, printed = run_script(script, tmp_path)
    assert status == 0, printed


@pytest.mark.parametrize(("name", "status", "said"), [("recorder", 0, ""), ("calibrate", 130, "robot is at rest\n")])
def test_a_signal_during_imports_ends_a_node_at_once(name, status, said):
    script = f"""
import os, signal, sys
from inertid_ros import nodes

def find_spec(*_module):
    os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, type("Finder", (), {{"find_spec": staticmethod(find_spec)}}))
sys.exit(nodes.run("{name}"))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == status and done.stdout.endswith(said) and not done.stderr, done


@pytest.mark.parametrize(("node", "option"), [
    ("feed_forward", "controller"), ("feed_forward", "parameters"), ("simulator", "controller"),
    ("excitation", "controller"), ("excitation", "speed_scaling.topic"), ("adaptation", "controller"),
    ("recorder", "odometry"), ("recorder", "further_joint_states"), ("calibrate", "move_service"),
])
def test_impossible_names_are_refused_in_one_line(node: str, option: str, tmp_path: Path):
    name = random.choice(["a b", "/", "arm/", "a\x1b[31m", "9arm", "ä", "a" * 300, "/".join(["abc"] * 80)])
    (tmp_path / "robot.urdf").write_text(URDF)
    parameters = {option: [name] if option.startswith("further") else name}
    if node == "calibrate":
        parameters["moved_by"] = "robot"
    elif node != "recorder":
        parameters["urdf"] = str(tmp_path / "robot.urdf")
    process = NodeProcess(node, tmp_path, parameters)
    assert process.process.wait(120) == 2, name
    log = process.log()
    assert log.count("\n") == 1 and log.strip().isprintable() and "correct the parameter" in log, log


def test_a_signal_while_a_node_is_made_ends_it_at_once(tmp_path: Path):
    script = """
import os, signal, sys, time
from inertid_ros.nodes.spin import run_node

def make():
    os.kill(os.getpid(), signal.SIGINT)
    os.write(1, b"went on")

sys.exit(run_node(make))
"""
    assert run_script(script, tmp_path) == (0, "")


@pytest.mark.parametrize(
    ("tick_takes", "callback_takes", "ticks", "passes"),
    [(0.0, 0.0, 200, 100), (0.02, 0.0, 50, 50), (0.0, 0.01, 34, 34), (0.01, 0.01, 25, 25)],
)
def test_neither_late_ticks_nor_slow_callbacks_leave_the_others_out(
    monkeypatch, tick_takes, callback_takes, ticks, passes
):
    """On a busy machine a tick takes longer than its period; answers and renewals have to be read all the same.

    In one second of a given time, with three timers that are always due: each pass runs all of them.
    """
    now, ticked, called = 100.0, [], []

    def take(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(spin, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(spin, "_Requests", lambda _node: SimpleNamespace(wait=take))
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node("ticking", context=context, enable_rosout=False, start_parameter_services=False)
    for _ in range(3):
        node.create_timer(0.0, lambda: (called.append(now), take(callback_takes)))
    node.tick, node.tick_s = lambda: (ticked.append(now), take(tick_takes)), 0.005
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    ticking = TickedSpin(executor, node)
    while now < 101.0 - 1e-9:
        ticking.spin_once()
    assert len(ticked) == pytest.approx(ticks, abs=1) and len(called) == pytest.approx(3 * passes, abs=3)
    node.destroy_node()
    rclpy.shutdown(context=context)


def test_a_request_is_answered_before_the_next_check_for_callbacks(monkeypatch):
    monkeypatch.setattr("inertid_ros.nodes.spin._CALLBACK_PERIOD_S", 60.0)
    context = rclpy.Context()
    rclpy.init(context=context)
    node, other = (rclpy.create_node(name, context=context) for name in ("rarely", "other"))
    node.create_service(Trigger, "stop", lambda _request, response: response)
    client = other.create_client(Trigger, "stop")
    node.tick, node.tick_s = lambda: None, 0.005
    executors = [SingleThreadedExecutor(context=context) for _ in range(2)]
    for executor, spun in zip(executors, (node, other), strict=True):
        executor.add_node(spun)
    ticking = TickedSpin(executors[0], node)
    try:
        assert client.wait_for_service(10.0)
        ticking.spin_once()  # the check that is due at the start
        answer, end = client.call_async(Trigger.Request()), time.monotonic() + 5.0
        while not answer.done() and time.monotonic() < end:
            ticking.spin_once()
            executors[1].spin_once(timeout_sec=0.0)
        assert answer.done()
    finally:
        for each in (node, other):
            each.destroy_node()
        rclpy.shutdown(context=context)


@pytest.mark.parametrize("kind", [SetParameters, SetParametersAtomically])
def test_a_parameter_of_an_unknown_type_is_refused(kind: Any) -> None:
    """Such a request ended the node, even while the robot moved."""
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node("quiet", context=context)
    refuse_unknown_parameter_types(node)
    (service,) = (each for each in node.services if each.srv_type is kind)
    known = Parameter(name="use_sim_time", value=ParameterValue(type=1, bool_value=False))
    unknown = Parameter(name="own", value=ParameterValue(type=88))
    for parameters, success in (([known], True), ([unknown], False), ([known, unknown], False)):
        answer = service.callback(kind.Request(parameters=parameters), kind.Response())
        results = answer.results if kind is SetParameters else [answer.result]
        assert [result.successful for result in results] == [success] * len(results)
        assert success or results[0].reason == "parameter 'own' has the unknown type 88"
    node.destroy_node()
    rclpy.shutdown(context=context)

