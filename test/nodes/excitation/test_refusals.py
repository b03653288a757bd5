"""What the excitation node refuses to do: nothing moves, and a reason is given."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue, SetParametersResult
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.lifecycle import TransitionCallbackReturn
from support.latencies import Latencies
from support.nodes.armed_excitation import DEACTIVATE, PARAMETERS, ArmedExcitation, excitation_in
from support.nodes.local_nodes import local_nodes
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.action import Excite


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArmedExcitation]:
    with excitation_in(
        tmp_path_factory.mktemp("refusals"), Latencies(), {**PARAMETERS, "monitor.state_timeout_s": 2.0}
    ) as excitation:
        yield excitation


@pytest.fixture
def excitation(shared: ArmedExcitation) -> ArmedExcitation:
    return shared.ready()


def test_without_a_process_for_planning_it_is_not_armed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    with local_nodes(tmp_path, {"excitation": {}}) as nodes:
        node = nodes["excitation"]
        node.machine.configure()
        monkeypatch.setattr(node.planning, "make_ready", fail)
        assert node.on_activate(None) is TransitionCallbackReturn.FAILURE
        assert not node.machine.is_armed


def test_plan_only_publishes_the_plan_and_moves_nothing(excitation: ArmedExcitation) -> None:
    plans = excitation.ros.listen(JointTrajectory, "excitation/plan")
    excitation.expect(excitation.excite(plan_only=True), Excite.Result.SUCCEEDED, "did not move")
    excitation.ros.until(lambda: plans, "plan")
    assert list(plans[0].joint_names) == ["shoulder", "elbow"] and len(plans[0].points) > 100
    assert not excitation.robot.record().commands


def test_stale_states(excitation: ArmedExcitation) -> None:
    excitation.robot.set_faults(silent=True)
    excitation.ros.spin(0.5)
    excitation.expect_refusal("no fresh joint states")


def test_old_stamps(excitation: ArmedExcitation) -> None:
    excitation.robot.set_faults(stamp_offset_s=-100.0)
    excitation.ros.spin(0.5)
    excitation.expect_refusal("stamps are off by")


def set_parameter(excitation: ArmedExcitation, name: str, value: ParameterValue) -> SetParametersResult:
    request = SetParameters.Request(parameters=[Parameter(name=name, value=value)])
    return excitation.ros.call(SetParameters, "excitation/set_parameters", request).results[0]


def test_recorder_that_does_not_confirm(excitation: ArmedExcitation) -> None:
    def require(wanted: bool) -> None:
        assert excitation.change_state(DEACTIVATE)
        value = ParameterValue(type=ParameterType.PARAMETER_BOOL, bool_value=wanted)
        assert set_parameter(excitation, "require_recorder", value).successful
        excitation.arm()

    require(True)
    excitation.expect_refusal("the recorder does not confirm")
    require(False)


def test_parameters_are_read_only_while_armed_and_after_a_fault(excitation: ArmedExcitation) -> None:
    value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=0.31)
    names = ["monitor.tracking_tolerance", "limits.velocity_fraction", "execution.horizon_s"]
    request = GetParameters.Request(names=names)
    before = excitation.ros.call(GetParameters, "excitation/get_parameters", request).values
    for name in names:
        refused = set_parameter(excitation, name, value)
        assert not refused.successful and "armed; deactivate it before parameters are changed" in refused.reason
    assert excitation.ros.call(GetParameters, "excitation/get_parameters", request).values == before
    assert excitation.ros.trigger("excitation/stop").success  # latches
    assert not set_parameter(excitation, names[0], value).successful
    assert excitation.change_state(DEACTIVATE)
    for name, usual in zip(names, before, strict=True):
        assert set_parameter(excitation, name, value).successful
        assert set_parameter(excitation, name, usual).successful


def test_plan_for_another_robot(excitation: ArmedExcitation) -> None:
    text = excitation.plan.read_text()
    excitation.plan.write_text(text.replace("model_hash: ", "model_hash: 0000"))
    excitation.expect_refusal("kinematics")


@pytest.mark.parametrize("damage", ["nan", "jump"])
def test_damaged_plans(excitation: ArmedExcitation, damage: str) -> None:
    """Other damages are refused alike, see ``test_broken_files_are_clean_errors`` in test/excitation/test_plan.py."""
    lines = excitation.plan.read_text().splitlines()
    row = next(index for index, line in enumerate(lines) if line.startswith("  - [1."))
    lines[row] = lines[row].replace(lines[row].split(", ")[1], ".nan" if damage == "nan" else "1.5", 1)
    excitation.plan.write_text("\n".join(lines))
    excitation.expect_refusal("plan")
