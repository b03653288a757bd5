"""What every node does before it starts."""

import signal
import subprocess
import sys
import time
from typing import Any

import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")

from rcl_interfaces.msg import Parameter, ParameterValue  # noqa: E402
from rcl_interfaces.srv import SetParameters, SetParametersAtomically  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402

from inertid_ros.nodes import MODULES  # noqa: E402
from inertid_ros.nodes.spin import TickedSpin, refuse_unknown_parameter_types  # noqa: E402


@pytest.mark.parametrize("name", ["calibrate", "recorder"])
def test_too_little_address_space_is_told(name: str):
    """As `ulimit -v` sets it after all modules are loaded; without the check the middleware may stand still."""
    module = MODULES[name]
    limited = (
        f"import resource, sys; from {module} import main;"
        " resource.setrlimit(resource.RLIMIT_AS, (900 * 2**20, -1)); sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr == ("error: the address space is limited to 900 MiB, and a node needs 1024; raise ulimit -v\n")


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


def test_a_node_ends_although_the_middleware_hangs():
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
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "made" in done.stdout, done.stderr


def test_a_callback_that_never_ends_does_not_hold_up_the_end():
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
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


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


def test_a_signal_while_a_node_is_made_ends_it_at_once():
    script = """
import os, signal, sys, time
from inertid_ros.nodes.spin import run_node

def make():
    os.kill(os.getpid(), signal.SIGINT)
    os.write(1, b"went on")

sys.exit(run_node(make))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr and not done.stdout, done


def test_a_node_that_ticks_keeps_time_beside_callbacks():
    """Neither ticks that take too long nor callbacks that never end leave the others out."""
    script = """
import sys, time
from rclpy.node import Node
from inertid_ros.nodes.spin import run_node

class Ticking(Node):
    tick_s = 0.005
    def __init__(self):
        super().__init__("ticking")
        self.began, self.ticks, self.calls, self.slow = time.monotonic(), [], 0, 0.0
        self.create_timer(0.0, self.call)
    def call(self):
        self.calls += 1
    def tick(self):
        self.ticks.append(time.monotonic())
        time.sleep(self.slow)
    @property
    def done(self):
        lasted = time.monotonic() - self.began
        if lasted > 1.0:
            self.slow = 0.02
        if lasted < 2.0:
            return False
        ticks = sum(each < self.began + 1.0 for each in self.ticks)
        print(ticks, len(self.ticks) - ticks, self.calls, flush=True)
        return True

sys.exit(run_node(Ticking))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    first, second, calls = map(int, done.stdout.split()[-3:])
    assert 100 < first <= 202 and 25 < second <= 52, (first, second)
    assert calls > 60


def test_callbacks_are_not_starved_where_ticks_are_always_late():
    """On a busy machine a tick takes longer than its period; answers and renewals have to be read all the same."""
    script = """
import sys, time
from rclpy.node import Node
from inertid_ros.nodes.spin import run_node

class Busy(Node):
    tick_s = 0.005
    def __init__(self):
        super().__init__("starved")
        self.called, self.begun = 0, time.monotonic()
        for _ in range(20):
            self.create_timer(0.02, self.call)
    def tick(self):
        time.sleep(0.01)
    def call(self):
        self.called += 1
    @property
    def done(self):
        return time.monotonic() > self.begun + 1.5

node = []
status = run_node(lambda: node.append(Busy()) or node[0])
print(node[0].called)
sys.exit(status)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) > 250  # of 1,500; one for each tick would be 150 at most


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
    spin = TickedSpin(executors[0], node)
    try:
        assert client.wait_for_service(10.0)
        spin.spin_once()  # the check that is due at the start
        answer, end = client.call_async(Trigger.Request()), time.monotonic() + 5.0
        while not answer.done() and time.monotonic() < end:
            spin.spin_once()
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
