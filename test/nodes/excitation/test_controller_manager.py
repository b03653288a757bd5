"""The controller manager is asked without waiting, and a controller that cannot move the robot is told."""

from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")

from rcl_interfaces.msg import ParameterValue  # noqa: E402
from rcl_interfaces.srv import GetParameters  # noqa: E402

from inertid_ros.ros import controller as controller_module  # noqa: E402
from inertid_ros.ros.controller import ControllerManager, controller_problem  # noqa: E402

JOINTS = ("shoulder", "elbow")


def controller(name: str, state: str = "active", joints: tuple[str, ...] = JOINTS) -> SimpleNamespace:
    return SimpleNamespace(name=name, state=state, claimed_interfaces=[f"{joint}/position" for joint in joints])


@pytest.mark.parametrize(
    ("controllers", "problem"),
    [
        ([controller("arm"), controller("hand", joints=("finger",))], ""),
        ([controller("arm", joints=("chain/shoulder", "chain/elbow", "wrist"))], ""),
        ([controller("hand")], r"has no arm (controllers: hand); set the parameter controller"),
        ([], "has no arm (controllers: none)"),
        ([controller("arm", "inactive", ())], "arm is inactive; activate it: ros2 control switch_controllers"),
        ([controller("arm", joints=("shoulder",))], "arm does not command elbow; hold them"),
    ],
)
def test_a_controller_that_cannot_move_the_robot_is_told(controllers: list[SimpleNamespace], problem: str) -> None:
    found = controller_problem(controllers, "arm", JOINTS)
    assert (problem in found) if problem else not found
    assert "\n" not in found


class FakeService:
    """A service client whose answers are given by hand."""

    def __init__(self) -> None:
        self.ready, self.futures, self.requests = True, [], []

    def service_is_ready(self) -> bool:
        return self.ready

    def call_async(self, request: object) -> SimpleNamespace:
        self.requests.append(request)
        self.futures.append(SimpleNamespace(answer=None))
        future = self.futures[-1]
        future.done, future.result = (lambda: future.answer is not None), (lambda: future.answer)
        return future

    def remove_pending_request(self, future: SimpleNamespace) -> None:
        assert future is self.futures[-1]


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeService]:
    """Clients by the name of their service."""
    request = SimpleNamespace(Request=SimpleNamespace)
    monkeypatch.setattr(controller_module, "optional_type", lambda module, name: request)
    return {}


def manager(services: dict[str, FakeService], name: str = "arm") -> ControllerManager:
    node = SimpleNamespace(create_client=lambda _type, name: services.setdefault(name, FakeService()),
        resolve_topic_name=lambda name: name)
    made = ControllerManager(node, name)
    made.joints = JOINTS
    return made


def test_answers_are_taken_when_they_come_and_asked_for_now_and_then(services: dict[str, FakeService]) -> None:
    asked = manager(services)
    lists, parameters = services["controller_manager/list_controllers"], services["arm/get_parameters"]
    for now in (0.0, 0.005, 0.3):
        asked.poll(now)
    assert len(lists.requests) == 1 and not parameters.requests and not asked.problem()
    lists.futures[0].answer = SimpleNamespace(controller=[controller("arm", "inactive", ())])
    asked.poll(0.51)
    assert "arm is inactive" in asked.problem()
    assert parameters.requests[0].names == ["constraints.shoulder.trajectory", "constraints.elbow.trajectory"]
    values = [ParameterValue(type=3, double_value=value) for value in (0.2, 0.0)]
    parameters.futures[0].answer = GetParameters.Response(values=values)
    asked.poll(1.0)
    asked.poll(1.01)
    lists.futures[-1].answer = SimpleNamespace(controller=[controller("arm")])
    asked.poll(1.02)
    assert not asked.problem() and asked.tolerance == 0.2
    assert len(lists.requests) == 2 and len(parameters.requests) == 1


def test_a_manager_that_does_not_answer_or_is_not_there_holds_nothing_up(services: dict[str, FakeService]) -> None:
    asked = manager(services)
    lists = services["controller_manager/list_controllers"]
    for now in (0.0, 0.9, 1.1, 2.5):
        asked.poll(now)
    assert len(lists.requests) == 3 and not asked.problem()
    lists.ready = False
    asked.poll(4.0)
    asked.poll(9.0)
    assert len(lists.requests) == 3 and asked.tolerance is None


def test_without_a_name_or_the_messages_nothing_is_asked(
    services: dict[str, FakeService], monkeypatch: pytest.MonkeyPatch
) -> None:
    manager(services, "").poll(0.0)
    monkeypatch.setattr(controller_module, "optional_type", lambda module, name: None)
    manager(services).poll(0.0)
    assert not services
