"""What every node does before it starts."""

import signal
import subprocess
import sys
import time

import pytest


@pytest.mark.parametrize("name", ["calibrate", "recorder"])
def test_too_little_address_space_is_told(name: str):
    """As `ulimit -v` sets it after all modules are loaded; without the check the middleware may stand still."""
    module = f"inertid_ros.nodes.{name}.node"
    limited = (
        f"import resource, sys; from {module} import main;"
        " resource.setrlimit(resource.RLIMIT_AS, (900 * 2**20, -1)); sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr == ("error: the address space is limited to 900 MiB, and a node needs 1024; raise ulimit -v\n")


def test_repeated_interruptions_end_with_status_0():
    """A node gets Ctrl-C in `ros2 launch` twice, the second time perhaps while Python ends."""
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
            time.sleep(0.001)
        assert node.poll() == 0
