"""The excitation node commands by a stream of positions: it follows the plan, stops, and never jumps.

Every pause of the sender stops this motion, one of the test's machine as well: so there is one test, and in it the
sender pauses.
"""

import signal
from pathlib import Path

import numpy as np
import pytest
from support.latencies import Latencies
from support.nodes.armed_excitation import PARAMETERS, excitation_in

from inertid_ros.action import Excite
from inertid_ros.excitation.plan import load_motion

pytestmark = pytest.mark.realtime


def test_streamed_positions_lie_on_the_plan_and_a_paused_sender_does_not_jump(
    tmp_path: Path, latencies: Latencies
) -> None:
    parameters = {**PARAMETERS, "command_interface": "position_stream"}
    with excitation_in(tmp_path, latencies, parameters) as excitation:
        excitation.ready()
        goal = excitation.excite()
        ended = goal.get_result_async()
        excitation.ros.until(lambda: excitation.robot.speed > 0.8 or ended.done(), "motion")
        excitation.node.signal(signal.SIGSTOP)
        excitation.ros.spin(1.5)
        excitation.node.signal(signal.SIGCONT)
        excitation.expect(goal, Excite.Result.STOPPED, "paused")
        excitation.ros.until(lambda: excitation.robot.at_rest, "rest")
        record = excitation.robot.record()
        plan = load_motion(excitation.plan)
    assert not record.problems and not record.commands
    positions = np.array([position for _, position in record.streamed])
    latencies.add("period of streamed positions", *np.diff([at for at, _ in record.streamed]))
    step = np.abs(np.diff(positions, axis=0)).max(axis=0)
    assert (step <= 0.055 * plan.limits.velocity).all(), step
    path = plan.sample(np.linspace(0, plan.duration, 5000))[0]
    assert np.abs(positions[:, None] - path[None]).max(axis=2).min(axis=1).max() < 5e-3
