"""Bag tests run with every library that can read and write bags."""

import sys
from importlib.util import find_spec

import pytest

from inertid_ros.data.files import bag_backends

STAND_IN = "stand-in for rosbag2_py"
INSTALLED = [name for name in ("rosbags", "rosbag2_py") if find_spec(name)]
if find_spec("rosbags") and find_spec("rclpy"):
    INSTALLED.append(STAND_IN)


@pytest.fixture(params=INSTALLED)
def backend(request, monkeypatch):
    """The library that the test's bags are written and read with."""
    name = request.param
    if name == STAND_IN:
        from support.recordings import rosbag2_stand_in

        monkeypatch.setitem(sys.modules, "rosbag2_py", rosbag2_stand_in)
        name = "rosbag2_py"
    monkeypatch.setattr(bag_backends, "BACKENDS", (name,))
    return bag_backends.bag_backend()
