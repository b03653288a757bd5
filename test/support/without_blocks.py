"""Calibrations of modules whose tests do not look at verdicts."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def without_blocks() -> Iterator[None]:
    """Hold no blocks out in turn where nothing else is held out: that takes as long as the fit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("inertid_ros.calibration.calibrate.validate_on_blocks", lambda *_: None)
        yield
