"""Parameters reach controllers: late, in a namespace, under another name, and only if they are for their robot."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from made_up_calibration import Case, made_up_case
from ros_bench import Bench, bench_in

from inertid_ros.action import Identify
from inertid_ros.data.bags import write_bag
from inertid_ros.msg import InertialParameters
from inertid_ros.robot.parameters import mass_com_inertia
from inertid_ros.ros import ParameterSubscriber
from inertid_ros.ros.conversions import known_parameters
from inertid_ros.ros.qos import LATCHED


@pytest.fixture(scope="module")
def case() -> Case:
    return made_up_case(seed=3)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with bench_in(tmp_path) as bench:
        yield bench


def _identified(bench: Bench, case: Case, folder: Path, **keywords: object) -> None:
    """An identifier that has published, in a namespace or with remaps."""
    urdf = folder / "given.urdf"
    urdf.write_text(case.given.urdf)
    bags = [str(write_bag(recording, folder / f"bag{i}")) for i, recording in enumerate(case.recordings)]
    bench.start("identifier", {"urdf": str(urdf), "output_directory": ""}, **keywords)
    namespace = str(keywords.get("namespace", ""))
    goal = Identify.Goal(train=bags[:1], validation=bags[1:])
    handle = bench.send_goal(Identify, f"{namespace}/identifier/identify" if namespace else "identifier/identify", goal)
    assert bench.result(handle).result.success


def test_a_late_controller_gets_the_latched_parameters(bench: Bench, case: Case, tmp_path: Path) -> None:
    _identified(bench, case, tmp_path)
    bench.spin(1.0)  # the message is long gone when the controller starts
    parameters = ParameterSubscriber(bench.node, case.given)
    bench.until(lambda: parameters.waiting, "latched parameters")
    given = np.array(case.given.pinocchio.inertias[1].toDynamicParameters())
    np.testing.assert_array_equal(parameters.model.inertias[1].toDynamicParameters(), given)  # only update changes it
    assert parameters.update() and parameters.sequence == 1
    assert not parameters.update()
    truth = np.array([inertia.toDynamicParameters() for inertia in case.truth.pinocchio.inertias[1:]])
    mine = np.array([inertia.toDynamicParameters() for inertia in parameters.model.inertias[1:]])
    before = np.array([inertia.toDynamicParameters() for inertia in case.given.pinocchio.inertias[1:]])
    last = -1  # the end of the chain is what joint torques know best
    com = [mass_com_inertia(bodies[last]).com for bodies in (truth, mine, before)]
    assert np.linalg.norm(com[1] - com[0]) < np.linalg.norm(com[2] - com[0])
    assert parameters.friction(np.ones(3)).shape == (3,)


def test_namespaces_and_remaps(bench: Bench, case: Case, tmp_path: Path) -> None:
    _identified(bench, case, tmp_path, namespace="/left", remaps={"identifier/parameters": "dynamics"})
    own = ParameterSubscriber(bench.node, case.given, topic="/left/dynamics")
    other = ParameterSubscriber(bench.node, case.given, topic="/right/dynamics")
    bench.until(lambda: own.waiting, "parameters under their new name")
    assert not other.waiting
    assert "/left/identifier/parameters" not in dict(bench.node.get_topic_names_and_types())


def test_parameters_that_cannot_be_trusted_are_refused(bench: Bench, case: Case) -> None:
    parameters = ParameterSubscriber(bench.node, case.given)
    publisher = bench.node.create_publisher(InertialParameters, "identifier/parameters", LATCHED)
    drives = {term: np.zeros(3) for term in case.given.drive_prior}
    stamp = bench.node.get_clock().now().to_msg()

    def message(bodies: np.ndarray = case.given.body_prior, **changes: object) -> InertialParameters:
        made = known_parameters(case.given, bodies, drives, stamp)
        for name, value in changes.items():
            setattr(made, name, value)
        return made

    impossible = case.given.body_prior.copy()
    impossible[1, 4] *= 50  # one moment larger than the sum of the others
    bad = (
        message(model_hash="somebody else"),
        message(validation_status=InertialParameters.REJECTED),
        message(bodies=impossible),
    )
    for count, wrong in enumerate(bad, 1):
        publisher.publish(wrong)
        bench.until(lambda count=count: parameters.refused == count, f"refusal {count}")
    assert not parameters.update() and parameters.sequence == 0
    publisher.publish(message(sequence=7))
    bench.until(lambda: parameters.waiting, "acceptance of good parameters")
    assert parameters.update() and parameters.sequence == 7
