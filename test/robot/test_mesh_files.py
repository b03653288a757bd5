"""Mesh URLs: found where vendors, workspaces and caches keep the files."""

import pytest

from inertid_ros.core.errors import ModelError
from inertid_ros.robot.geometry.mesh_files import locate_mesh
from inertid_ros.robot.link_shapes import collision_shapes
from inertid_ros.robot.model import load_model

URL = "package://arm_description/meshes/a%20b.stl"


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A function that makes a file below a folder, and an environment without ROS."""
    for variable in ("AMENT_PREFIX_PATH", "ROS_PACKAGE_PATH", "ROBOT_DESCRIPTIONS_CACHE"):
        monkeypatch.setenv(variable, str(tmp_path / "none"))

    def make(*parts):
        path = tmp_path.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return path

    return make


@pytest.mark.parametrize(
    "places, urdf, variable",
    [
        (("share", "arm_description", "meshes", "a b.stl"), "share/arm_description/urdf", None),
        (("clone-main", "meshes", "a b.stl"), "clone-main/urdf", None),
        (("clone-main", "meshes", "a%20b.stl"), "clone-main/urdf", None),
        (("ws", "share", "arm_description", "meshes", "a b.stl"), "elsewhere", ("AMENT_PREFIX_PATH", "ws")),
        (("src", "arm_description", "meshes", "a b.stl"), None, ("ROS_PACKAGE_PATH", "src")),
        (("src", "arm_description", "meshes", "a b.stl"), None, ("ROS_PACKAGE_PATH", "src/arm_description")),
    ],
)
def test_packages_are_found_above_the_urdf_and_in_ros_paths(file, tmp_path, monkeypatch, places, urdf, variable):
    expected = file(*places)
    if variable:
        monkeypatch.setenv(variable[0], f"{tmp_path / 'none'}:{tmp_path / variable[1]}")
    assert locate_mesh(URL, "link", (), urdf and tmp_path / urdf) == expected


def test_caches_of_robot_descriptions_are_looked_through(file, tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOT_DESCRIPTIONS_CACHE", str(tmp_path / "cache"))
    expected = file("cache", "repository", "arm_description", "meshes", "a b.stl")
    assert locate_mesh(URL, "link") == expected


def test_given_folders_come_first_and_paths_may_be_relative(file, tmp_path):
    file("arm_description", "meshes", "a b.stl")
    wanted = file("mine", "arm_description", "meshes", "a b.stl")
    for folder in ("mine", "mine/arm_description"):
        assert locate_mesh(URL, "link", (str(tmp_path / folder),), tmp_path / "urdf") == wanted
    beside = file("urdf", "b.stl")
    assert locate_mesh("b.stl", "link", (), tmp_path / "urdf") == beside
    assert locate_mesh(f"file://{beside}", "link") == beside


def test_a_mesh_that_is_nowhere_names_link_and_option(file, tmp_path):
    with pytest.raises(ModelError, match=r"^link 'a': mesh .*not found .*excitation.collision.mesh_folders=\["):
        locate_mesh(URL, "link 'a'", (), tmp_path)


@pytest.mark.parametrize("robot", ["xarm_description/urdf/xarm7.urdf", "b1_description/urdf/b1-z1.urdf"])
def test_meshes_of_published_robots_are_found(robots, robot, monkeypatch):
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    shapes, unusable = collision_shapes(load_model(robots / robot))
    assert not unusable and any(shape.geometry == "mesh" for shape in shapes)
