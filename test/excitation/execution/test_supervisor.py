"""Supervision of a streamed motion, where the robot stands while its sender pauses."""

import numpy as np
import pytest
from support.excitation.streamed_motion import TICK, stream
from support.robots.quick_plans import quick_plan, simple_limits

from inertid_ros.excitation.execution.horizons import HorizonTable


@pytest.fixture(scope="module")
def table() -> HorizonTable:
    limits = simple_limits(2)
    return HorizonTable(quick_plan(limits, np.zeros(2), 1), limits)


def test_an_undisturbed_stream_is_the_plan(table: HorizonTable) -> None:
    streamed = stream(table, {})
    positions = streamed.positions
    assert not streamed.run.fault
    wanted = table.plan.sample(TICK * np.arange(len(positions)))[0]
    np.testing.assert_allclose(positions, wanted, atol=1e-6)


def test_a_short_pause_does_no_harm(table: HorizonTable) -> None:
    assert not stream(table, {3.0: 0.03}).run.fault


@pytest.mark.parametrize("look_first", [False, True])
@pytest.mark.parametrize("pause", [0.08, 0.3, 20.0])
def test_after_a_pause_the_robot_goes_on_where_it_stood_and_brakes(table, pause, look_first) -> None:
    streamed = stream(table, {3.0: pause}, look_first)
    positions = streamed.positions
    assert "paused" in streamed.run.fault
    limits = table.limits
    assert (np.abs(np.diff(positions, axis=0)) <= 1.01 * TICK * limits.velocity).all()
    # On the path of the plan, and at rest soon after.
    path = table.plan.sample(np.linspace(0, table.plan.duration, 5000))[0]
    distance = np.abs(positions[:, None] - path[None]).max(axis=2).min(axis=1)
    assert distance.max() < 2e-3
    assert len(positions) * TICK < 3.0 + table.options.horizon_s + table.brakes.longest + 0.2
