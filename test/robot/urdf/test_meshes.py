"""Meshes: where their files are found, and that they are read in another process, which hostile ones end."""

import logging
import os
import random
import re

import numpy as np
import pytest
from support.fuzzing.meshes import changed
from support.robots.mesh_texts import CUBE, HOSTILE, RIGHT, bare_robot, binary_stl

from inertid_ros.core.errors import ModelError, log_once
from inertid_ros.excitation.constraints.scene import surface_models
from inertid_ros.robot.link_shapes import collision_shapes
from inertid_ros.robot.model import load_model
from inertid_ros.robot.urdf import meshes
from inertid_ros.robot.urdf.meshes import Mesh, Unreadable, locate_mesh, mesh_file, read_meshes

coal = pytest.importorskip("coal")
UNIT = (1.0, 1.0, 1.0)


def written(folder, contents):
    files = {}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
        files[name] = mesh_file(folder / name, UNIT)
    return files


def test_hostile_meshes_are_told_and_the_others_are_read(tmp_path):
    files = written(tmp_path, {name: content for name, (content, _) in HOSTILE.items()} | RIGHT)
    absent = mesh_file(tmp_path / "none.stl", UNIT)
    found = read_meshes([*files.values(), absent])
    assert isinstance(found[absent], Unreadable)
    for name, (_, reason) in HOSTILE.items():
        mesh = found[files[name]]
        assert isinstance(mesh, Unreadable) and mesh.remedy and re.search(reason, mesh.reason), name
    for name in RIGHT:
        corners = found[files[name]].hull_vertices.round(6).tolist()
        assert sorted(corners) == sorted(CUBE.round(6).tolist())


def test_a_mesh_is_read_once_and_again_after_it_has_changed(tmp_path, monkeypatch):
    path = tmp_path / "a.stl"
    path.write_bytes(binary_stl())
    first = read_meshes([mesh_file(path, UNIT)] * 2)
    with monkeypatch.context() as patched:
        patched.setattr(meshes, "WorkerProcess", None)
        assert read_meshes([mesh_file(path, UNIT)]) == first
    path.write_bytes(binary_stl(2 * CUBE))
    os.utime(path, ns=(0, 1))
    again, halved = read_meshes(mesh_file(path, (scale,) * 3) for scale in (1.0, 0.5)).values()
    assert np.ptp(again.vertices) == pytest.approx(2 * np.ptp(halved.vertices)) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("limit", "value", "triangles", "reason"),
    [
        ("_SECONDS", 1, 400_000, "takes longer than 1 s of processor time"),
        ("_MEMORY_MB", 280, 60_000, "MiB of memory"),
        ("_ALL_S", 0.01, 400_000, "all meshes of the robot take longer"),
    ],
)
def test_a_mesh_that_exceeds_a_limit_is_told(tmp_path, monkeypatch, limit, value, triangles, reason):
    points = np.random.default_rng(0).normal(size=(triangles, 3, 3))
    record = np.zeros(triangles, dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    record["corners"] = points
    content = b"large".ljust(80) + np.uint32(triangles).tobytes() + record.tobytes()
    files = written(tmp_path, {"large.stl": content, "b.stl": RIGHT["b.stl"]})
    monkeypatch.setattr(meshes, limit, value)
    large, small = read_meshes(files.values()).values()
    assert reason in large.reason
    assert isinstance(small, Unreadable if limit == "_ALL_S" else Mesh)


def test_a_mesh_that_cannot_be_read_is_one_line_of_its_link(tmp_path, caplog):
    """Without inertia the shapes are needed to load the robot at all, by any command or node."""
    urdf = bare_robot(tmp_path, {"bad.dae": HOSTILE["itself.dae"][0], "good.stl": RIGHT["b.stl"], "": b""})
    log_once.cache_clear()
    with caplog.at_level(logging.WARNING):
        model = load_model(urdf)
    told = [record.getMessage() for record in caplog.records if "cannot read mesh" in record.getMessage()]
    assert told == [
        f"URDF link 'link0' collision: cannot read mesh '{tmp_path / 'bad.dae'}' (its reader ends with SIGSEGV);"
        " export it again, as binary STL"
    ]
    shapes, problems = collision_shapes(model)
    assert {shape.link for shape in shapes} == {"link1"} and list(problems.items()) == [("link0", told[0])]


def test_distances_are_those_of_the_library_that_read_the_file(robots):
    shapes, _ = collision_shapes(load_model(robots / "ur_description/urdf/ur5_robot.urdf"))
    rng, ball, still = np.random.default_rng(0), coal.Sphere(0.05), coal.Transform3s()
    for shape in (shape for shape in shapes if shape.surface is not None):
        hull, whole = surface_models(shape.surface)
        read = coal.MeshLoader().load(str(shape.mesh), np.array(shape.scale))
        read.buildConvexHull(True, "Qt")
        for at in rng.normal(size=(5, 3)):
            for pair in ((hull, read.convex), (whole, read)):
                request, place = coal.DistanceRequest(), coal.Transform3s(np.eye(3), at)
                first, second = (
                    coal.distance(each, still, ball, place, request, coal.DistanceResult()) for each in pair
                )
                assert first == second


def test_no_changed_mesh_ends_this_process(tmp_path):
    """See benchmarks/mesh_fuzzing.py for 10,000."""
    rng = random.Random(0)
    names = [rng.choice(sorted(RIGHT)) for _ in range(60)]
    files = written(tmp_path, {f"{index}{name}": changed(RIGHT[name], rng) for index, name in enumerate(names)})
    found = list(read_meshes(files.values()).values())
    assert {type(mesh) for mesh in found} == {Mesh, Unreadable}
    for mesh in found:
        if isinstance(mesh, Mesh):
            assert np.isfinite(mesh.vertices).all() and len(mesh.hull_vertices) > 3
            surface_models(mesh)


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
