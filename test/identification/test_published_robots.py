"""A sample of ``benchmarks/published_robots.py``: first recordings of robots as published."""

import importlib
import warnings

import pytest
from support.paths import ROOT

from inertid_ros.simulation.example_robots import example_urdf

XARM, UR5 = "xarm_description/urdf/xarm7.urdf", "ur_description/urdf/ur5_robot.urdf"
TWO_DOFS = "asr_twodof_description/urdf/TwoDofs.urdf"  # so few parameters that their fit leaves nothing
BOLT = "bolt_description/robots/bolt.urdf"  # its base is free


@pytest.fixture(scope="module")
def benchmark():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield importlib.import_module("published_robots")


@pytest.mark.parametrize(
    ("urdf", "case"),
    [
        (XARM, "noise-free"), (BOLT, "noise-free"), (TWO_DOFS, "noise-free"), (XARM, "one weak joint"),
        (UR5, "efforts rounded to 1 %")])
def test_first_recordings(benchmark, urdf, case):
    model = benchmark.published_robot(example_urdf(urdf))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = benchmark.calibrated(benchmark.trial(model, case, 0))
    assert found.masses.max() < 10
    if case == "noise-free":
        assert found.held_out < 2e-4
        assert found.base.max() < benchmark.RIGHT
    else:
        assert found.held_out < found.floor
