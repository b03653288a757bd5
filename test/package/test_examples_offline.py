"""The offline examples do what they say: one calibrates, one follows its reference with an unknown load."""

import importlib.util
from types import ModuleType

from support.paths import ROOT

EXAMPLES = ROOT / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_offline_calibration(robots):
    """The held-out torque error falls at least five times."""
    result = example("calibrate_offline").calibrate(duration_s=10.0, iterations=0)
    assert result.passed
    assert result.calibrated.relative_error < result.prior.relative_error / 5


def test_adaptive_tracking(robots):
    before, gripped, *_, last = example("adaptive_tracking").largest_errors(2.0)
    assert gripped > 5 * before
    assert last < gripped / 5
