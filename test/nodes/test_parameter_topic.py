"""Parameters arrive at controllers in a namespace and under another name."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.nodes.ros_client import RosClient, ros_client_in
from support.recordings.synthetic_calibration import Case, synthetic_case

from inertid_ros.action import Identify
from inertid_ros.data.files.bag_writing import write_bag
from inertid_ros.ros import ParameterSubscriber


@pytest.fixture(scope="module")
def case() -> Case:
    return synthetic_case(seed=3)


@pytest.fixture
def ros(tmp_path: Path) -> Iterator[RosClient]:
    with ros_client_in(tmp_path) as ros:
        yield ros


def _identified(ros: RosClient, case: Case, folder: Path, **keywords: object) -> None:
    """An identifier that has published, in a namespace or with remaps."""
    urdf = folder / "given.urdf"
    urdf.write_text(case.given.urdf)
    bags = [str(write_bag(recording, folder / f"bag{i}")) for i, recording in enumerate(case.recordings)]
    ros.start("identifier", {"urdf": str(urdf), "output_directory": ""}, **keywords)
    namespace = str(keywords.get("namespace", ""))
    goal = Identify.Goal(train=bags[:1], validation=bags[1:])
    handle = ros.send_goal(Identify, f"{namespace}/identifier/identify" if namespace else "identifier/identify", goal)
    assert ros.result(handle).result.success


def test_namespaces_and_remaps(ros: RosClient, case: Case, tmp_path: Path) -> None:
    _identified(ros, case, tmp_path, namespace="/left", remaps={"identifier/parameters": "dynamics"})
    own = ParameterSubscriber(ros.node, case.given, topic="/left/dynamics")
    other = ParameterSubscriber(ros.node, case.given, topic="/right/dynamics")
    ros.until(lambda: own.waiting, "parameters under their new name")
    assert not other.waiting
    assert "/left/identifier/parameters" not in dict(ros.node.get_topic_names_and_types())
