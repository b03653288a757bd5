"""The excitation node moves the joints and wheels of a simulated robot whose base floats."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.qos import QoSProfile
from support.nodes.armed_excitation import PARAMETERS
from support.nodes.ros_client import RosClient, ros_client_in
from support.package_parameters import parameters_in

from inertid_ros.action import Excite
from inertid_ros.config.excitation import MonitorOptions
from inertid_ros.config.robot import RobotOptions, WheelOptions
from inertid_ros.nodes.excitation.goal import ExcitationGoal

pytest.importorskip("mujoco", reason="needs MuJoCo (pip install mujoco)")
pytestmark = pytest.mark.realtime
QUICK = {f"excitation.combinations.{key}": value
    for key, value in {"orders": 1, "starts": 2, "iterations": 1, "offered": 4, "most": 2}.items()}


@pytest.mark.parametrize(("limits", "velocity", "twist", "message"), [
    ({}, [1.0, 19.0], [0.1, 0, 0, 0, 0, 0], ""),
    ({}, [9.0, -21.0], [0.1, 0, 0, 0, 0, 0], "wheel 'wheel' turns at 21 rad/s, more than 20;"),
    ({"base_speed": 0.05}, [0.0, 0.0], [0.03, 0.05, 0, 1, 0, 0], "the base moves at 0.0583 m/s, more than"),
    ({"base_rate": 0.05}, [0.0, 0.0], [9, 9, 9, 0, 0, 0.06], "the base moves at 0.06 rad/s, more than"),
    ({"base_rate": 0.05}, [0.0, 0.0], [np.nan] * 6, "the twist of the base is not received"),
    ({}, [0.0, 0.0], [np.nan] * 6, ""),
])
def test_rates_beyond_their_limits_are_named(
    limits: dict[str, float], velocity: list[float], twist: list[float], message: str
) -> None:
    model = SimpleNamespace(joint_names=("arm", "wheel"), limits=SimpleNamespace(velocity=np.array([1.0, 20.0])))
    goal = SimpleNamespace(
        _robot=SimpleNamespace(model=model), _robot_options=RobotOptions(base="free", wheels={"wheel": WheelOptions()}),
        _options=SimpleNamespace(monitor=MonitorOptions(**limits)))
    reason = ExcitationGoal.excessive_rate(goal, np.array(velocity), np.array(twist))  # type: ignore[arg-type]
    assert reason.startswith(message) if message else not reason


def change_state(ros: RosClient, transition: int) -> bool:
    request = ChangeState.Request(transition=Transition(id=transition))
    return bool(ros.call(ChangeState, "excitation/change_state", request).success)


def excite(ros: RosClient) -> Excite.Result:
    return ros.result(ros.send_goal(Excite, "excitation/excite", Excite.Goal())).result


def set_limit(ros: RosClient, name: str, value: float) -> None:
    given = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=value)
    request = SetParameters.Request(parameters=[Parameter(name=f"monitor.{name}", value=given)])
    assert ros.call(SetParameters, "excitation/set_parameters", request).results[0].successful


def test_wheels_turn_the_base_and_their_limits_stop_them(tmp_path: Path) -> None:
    with ros_client_in(tmp_path) as ros:
        ros.start("simulator", parameters_in("space", "simulator"))
        ros.start("excitation", {**parameters_in("space", "excitation"), **PARAMETERS, **QUICK})
        motion = ros.listen(Odometry, "odometry", QoSProfile(depth=50))
        ros.until(lambda: motion, "motion of the base", 40.0)
        ros.until(lambda: change_state(ros, Transition.TRANSITION_CONFIGURE), "description of the robot")
        assert change_state(ros, Transition.TRANSITION_ACTIVATE)
        result = excite(ros)
        assert result.error_code == Excite.Result.SUCCEEDED, result.message
        rates = [[axis.x, axis.y, axis.z] for axis in (message.twist.twist.angular for message in motion)]
        assert np.abs(rates).max() > 5e-3 and np.abs(rates[-1]).max() < 1e-3
        for name, value, usual, message in (
            ("wheel_speed", 0.1, 1.0, r"wheel 'wheel_.' turns at \S+ rad/s, more than 2;"),
            ("base_rate", 1e-3, 0.5, r"the base moves at \S+ rad/s, more than monitor.base_rate 0.001;"),
        ):
            assert change_state(ros, Transition.TRANSITION_DEACTIVATE)
            set_limit(ros, name, value)
            assert change_state(ros, Transition.TRANSITION_ACTIVATE)
            result = excite(ros)
            assert result.error_code == Excite.Result.STOPPED and re.search(message, result.message), result.message
            assert change_state(ros, Transition.TRANSITION_DEACTIVATE)
            set_limit(ros, name, usual)
            assert change_state(ros, Transition.TRANSITION_ACTIVATE)
