"""The offline example calibrates: held-out torque error falls at least five times."""

import importlib.util

from support.paths import ROOT

EXAMPLES = ROOT / "examples"


def test_offline_calibration(robots):
    spec = importlib.util.spec_from_file_location("calibrate_offline", EXAMPLES / "calibrate_offline.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    result = example.calibrate(duration_s=10.0, iterations=0)
    assert result.passed
    assert result.calibrated.relative_error < result.prior.relative_error / 5
