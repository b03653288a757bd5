"""What every node does before it starts."""

import subprocess
import sys

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
