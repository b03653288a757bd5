"""The offline examples do what they say: one calibrates, one follows its reference with an unknown load."""

import importlib.util
from functools import partial
from types import ModuleType

from support.paths import ROOT

from inertid_ros.config.excitation import CollisionOptions, ExcitationOptions

EXAMPLES = ROOT / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_offline_calibration(robots):
    """The held-out torque error falls at least five times."""
    module = example("calibrate_offline")
    # Without distances a motion is planned in a fifth of the time.
    module.ExcitationOptions = partial(
        ExcitationOptions, mounting="none", collision=CollisionOptions(self_collision=False)
    )
    result = module.calibrate(duration_s=10.0, iterations=0)
    assert result.passed
    assert result.calibrated.relative_error < result.prior.relative_error / 5


def test_adaptive_tracking(robots):
    before, gripped, *_, last = example("adaptive_tracking").largest_errors(2.0)
    assert gripped > 5 * before
    assert last < gripped / 5
