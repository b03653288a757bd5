"""Distances of links, obstacles and floor: against Coal, against brute force, proven between samples."""

import logging
import pickle
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest
from lxml import etree
from support.robots.quick_plans import PANDA_START, panda, panda_limits, quick_plan, simple_limits
from support.robots.random_robots import random_urdf

from inertid_ros.config.excitation import CollisionOptions, ExcitationOptions, ObstacleOptions
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.constraints.clearance import ClearanceConstraint
from inertid_ros.excitation.constraints.constraint import MotionSamples
from inertid_ros.excitation.constraints.scene import ExactDistances, segment_distances
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.excitation.planning.planner import plan_excitation
from inertid_ros.robot.model import load_model
from inertid_ros.robot.urdf.shapes import enclosing_capsule

TABLE = {"table": ObstacleOptions("box", size=(1.0, 0.6, 0.04), xyz=(0.6, 0.0, 0.1), rpy=(0.0, 0.0, 0.2))}
BALL = {"ball": ObstacleOptions("sphere", radius=0.1, xyz=(0.3, 0.5, 0.9))}
POST = {"post": ObstacleOptions("cylinder", radius=0.05, length=1.0, xyz=(-0.4, 0.3, 0.5))}
ROD = {"rod": ObstacleOptions("capsule", radius=0.05, length=1.0, xyz=(-0.4, -0.3, 0.5), rpy=(0.1, 0.2, 0.3))}


def shaped_robot(rng, joints=4):
    """A random robot with a random primitive on every link."""
    root = etree.fromstring(random_urdf(rng, joints))
    for link in root.findall("link"):
        for _ in range(int(rng.integers(1, 3))):
            a, b, c = rng.uniform(0.03, 0.12, 3)
            shape = [f'<box size="{a} {b} {c}"/>', f'<sphere radius="{a}"/>', f'<cylinder radius="{a}" length="{b}"/>']
            xyz, rpy = rng.normal(scale=0.1, size=3), rng.uniform(-3, 3, 3)
            text = (
                f'<collision><origin xyz="{xyz[0]} {xyz[1]} {xyz[2]}" rpy="{rpy[0]} {rpy[1]} {rpy[2]}"/>'
                f"<geometry>{shape[int(rng.integers(3))]}</geometry></collision>"
            )
            link.append(etree.fromstring(text))
    return load_model(etree.tostring(root, encoding="unicode"))


def limits_of(model):
    free = simple_limits(model.joints)
    return MotionLimits(
        model.joint_names, free.lower, free.upper, free.velocity, free.acceleration, np.full(model.joints, 1e5)
    )


def samples(scene, q):
    return MotionSamples(scene.chain, q, np.zeros_like(q), np.zeros_like(q))


def truth(model):
    """Distances of all pairs of links in a pose, by Pinocchio's own reading of the URDF: names to distance."""
    plain = pin.buildModelFromXML(model.urdf)
    geometry = pin.buildGeomFromUrdfString(plain, model.urdf, pin.GeometryType.COLLISION)
    geometry.addAllCollisionPairs()
    data, geometry_data = plain.createData(), pin.GeometryData(geometry)
    objects = geometry.geometryObjects

    def distances(pose):
        pin.computeDistances(plain, data, geometry, geometry_data, pose)
        out = {}
        for pair, result in zip(geometry.collisionPairs, geometry_data.distanceResults, strict=True):
            names = frozenset(plain.frames[objects[index].parentFrame].name for index in (pair.first, pair.second))
            out[names] = min(out.get(names, np.inf), result.min_distance)
        return out

    return distances


@pytest.mark.parametrize("seed", range(4))
def test_distances_are_those_of_pinocchio(seed):
    rng = np.random.default_rng(seed)
    model = shaped_robot(rng)
    scene = ClearanceConstraint(model, limits_of(model), CollisionOptions()).scene
    q, expected = rng.uniform(-2, 2, (20, model.joints)), truth(model)
    placements = scene.chain.placements(q)
    capsules, balls = scene.capsule_distances(placements), scene.ball_distances(placements)
    for row, pose in enumerate(q):
        known = expected(pose)
        pairs = np.arange(len(scene.pairs))
        exact = scene.distances(np.repeat(placements[row : row + 1], len(pairs), axis=0), pairs, np.zeros(len(pairs)))
        wanted = np.array([known[frozenset(scene.names(pair))] for pair in pairs])
        apart = wanted > 1e-6  # depths of overlaps are not unique
        assert exact[apart] == pytest.approx(wanted[apart], abs=1e-5)  # GJK's own tolerance
        assert (capsules[row] <= np.maximum(wanted, 0) + 1e-5).all()
        assert (balls[row] <= capsules[row] + 1e-9).all()


def test_distances_of_segments():
    ends = np.random.default_rng(0).normal(size=(4, 3, 4000))
    ends[1, :, :300] = ends[0, :, :300]  # points
    ends[3, :, 200:500] = ends[2, :, 200:500]
    ends[3, :, 1000:2000] = ends[2, :, 1000:2000] + 2 * (ends[1, :, 1000:2000] - ends[0, :, 1000:2000])  # parallel
    found = segment_distances(*ends)
    best = np.full(4000, np.inf)
    along = ends[3] - ends[2]
    for share in np.linspace(0, 1, 201):
        point = ends[0] + share * (ends[1] - ends[0])
        at = np.clip(((point - ends[2]) * along).sum(axis=0) / np.maximum((along**2).sum(axis=0), 1e-12), 0, 1)
        best = np.minimum(best, np.linalg.norm(point - ends[2] - at * along, axis=0))
    assert (found <= best + 1e-12).all()
    assert found == pytest.approx(best, abs=0.02)


@pytest.mark.parametrize("seed", range(5))
def test_capsules_enclose(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3))
    capsule = enclosing_capsule(points)
    start, end = np.repeat(capsule.start[:, None], 60, 1), np.repeat(capsule.end[:, None], 60, 1)
    assert (segment_distances(points.T, points.T, start, end) <= capsule.radius + 1e-9).all()


@pytest.mark.parametrize("seed", range(3))
def test_penalty_is_differentiated_exactly(seed):
    rng = np.random.default_rng(seed)
    model = shaped_robot(rng)
    options = CollisionOptions(obstacles=BALL | POST, clearance_m=0.05, obstacle_clearance_m=0.05)
    constraint = ClearanceConstraint(model, limits_of(model), options, floor=-0.5)
    q, direction = rng.uniform(-1, 1, (2, 30, model.joints))
    penalty, step = constraint.penalty(samples(constraint.scene, q)), 1e-5
    assert penalty.value > 0
    values = [constraint.penalty(samples(constraint.scene, q + sign * step * direction)).value for sign in (1, -1)]
    assert (penalty.position * direction).sum() == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_what_passes_is_apart_everywhere_and_what_fails_is_named(seed):
    rng = np.random.default_rng(10 + seed)
    model = shaped_robot(rng)
    limits = limits_of(model)
    plan = quick_plan(limits, np.zeros(model.joints), seed, ExcitationOptions(duration_s=10.0))
    options = CollisionOptions(clearance_m=1e-3, obstacle_clearance_m=1e-3, obstacles=BALL | TABLE)
    constraint = ClearanceConstraint(model, limits, options, floor=-10.0)
    scene = constraint.scene
    placements = scene.chain.placements(plan.sample(np.linspace(0, plan.duration, 1500))[0])
    capsules = scene.capsule_distances(placements)
    rows, pairs = np.nonzero(capsules < constraint.needed)
    exact = scene.distances(placements[rows], pairs, np.zeros(len(rows)))
    worst = float((exact - constraint.needed[pairs]).min(initial=np.inf))
    if worst < 0:
        with pytest.raises(ExcitationError, match=r"link '.*': comes to .* m from '.*' at .* s, closer than the clear"):
            constraint.check(plan)
    else:
        constraint.check(plan)
        closest = constraint.closest_approach(plan)
        assert closest.closest_m >= closest.required_m
        # A hair more than there is somewhere is refused.
        rows, pairs = np.unravel_index(np.argsort(capsules, axis=None)[:500], capsules.shape)
        links = scene.pairs[pairs, 1] >= 0
        distance = scene.distances(placements[rows], pairs, np.full(len(rows), np.inf))[links].min()
        needed = distance + 1e-4
        options = CollisionOptions(clearance_m=needed, obstacle_clearance_m=needed, obstacles=BALL | TABLE)
        tight = ClearanceConstraint(model, limits, options)
        with pytest.raises(ExcitationError, match="closer than the clearance"):
            tight.check(plan)


@pytest.fixture(scope="module")
def arm(robots):
    return panda(robots)


@pytest.fixture(scope="module")
def folders(robots):
    return (str(robots.parent.parent),)


def test_floor_is_met_by_real_geometry(arm, folders):
    limits = panda_limits(arm)
    plan = quick_plan(limits, PANDA_START, 3)
    ignored = ("panda_leftfinger", "panda_rightfinger", "panda_hand", "panda_link2")  # the last is always close to it
    solid = CollisionOptions(self_collision=False, mesh_folders=folders, ignored={"floor": ignored})
    found = ClearanceConstraint(arm, limits, solid, floor=-5.0).closest_approach(plan)
    height = found.closest_m - found.required_m - 5.0
    ClearanceConstraint(arm, limits, solid, floor=height - 0.01).check(plan)
    options = CollisionOptions(self_collision=False, ignored={"floor": (*ignored[:2], ignored[3])})
    lines = ClearanceConstraint(replace(arm, folder=None), limits, options, floor=-5.0)
    assert found.closest_m < lines.closest_approach(plan).closest_m - 0.02  # links have a width
    with pytest.raises(ExcitationError, match=r"0\.04\d m from the floor at .* s, closer than the clearance 0\.050 m"):
        ClearanceConstraint(arm, limits, solid, floor=height + 1e-3).check(plan)


def test_planned_motion_avoids_table_floor_and_itself(arm, folders):
    limits = panda_limits(arm)
    collision = CollisionOptions(mesh_folders=folders, obstacles=TABLE | ROD, obstacle_clearance_m=0.02)
    options = ExcitationOptions(
        duration_s=5.0, base_frequency_hz=0.2, starts=3, improved=1, iterations=9, criterion_samples=40,
        constraint_samples=100, floor_m=0.0, collision=collision,
    )
    plan = plan_excitation(arm, limits, PANDA_START, options)
    constraint = ClearanceConstraint(arm, limits, collision, 0.0)
    constraint.check(plan)
    assert constraint.closest_approach(plan).closest_m >= 0.01
    assert 0 < constraint.usage(plan).used <= 1 + 1e-6
    assert np.ptp(plan.position, axis=0).min() > 0.1
    again = pickle.loads(pickle.dumps(constraint))
    again.check(plan)


def test_neighbours_srdf_and_ignored_pairs(arm, robots, folders, tmp_path):
    limits = panda_limits(arm)

    def names(**options):
        scene = ClearanceConstraint(arm, limits, CollisionOptions(mesh_folders=folders, **options)).scene
        return {frozenset(scene.names(pair)) for pair in range(len(scene.pairs))}

    everything = names()
    assert frozenset(("panda_link1", "panda_link2")) not in everything  # a joint between them
    assert frozenset(("panda_hand", "panda_link6")) not in everything  # fixed to a neighbour
    assert frozenset(("panda_link2", "panda_hand")) in everything
    srdf = tmp_path / "robot.srdf"
    srdf.write_text('<robot name="x"><disable_collisions link1="panda_hand" link2="panda_link2" reason="x"/></robot>')
    assert everything - names(srdf=str(srdf)) == {frozenset(("panda_link2", "panda_hand"))}
    assert everything - names(ignored={"panda_hand": ("panda_link2",)}) == {frozenset(("panda_link2", "panda_hand"))}
    assert not names(self_collision=False)
    for text, words in (("<robot", "is not XML"), ("<html/>", "expected <robot>")):
        srdf.write_text(text)
        with pytest.raises(ExcitationError, match=words):
            names(srdf=str(srdf))
    with pytest.raises(ExcitationError, match="cannot be read"):
        names(srdf=str(tmp_path / "none.srdf"))
    with pytest.raises(ExcitationError, match="'elbow' is neither a link"):
        names(ignored={"elbow": ("panda_hand",)})


def test_obstacle_names_are_unlike_those_of_links(arm):
    for name in ("panda_link3", "floor"):
        with pytest.raises(ExcitationError, match="in use"):
            ClearanceConstraint(arm, panda_limits(arm), CollisionOptions(obstacles={name: BALL["ball"]}))


def test_a_start_in_collision_is_refused(arm, folders):
    options = CollisionOptions(mesh_folders=folders, obstacles=TABLE, obstacle_clearance_m=0.01)
    constraint = ClearanceConstraint(arm, panda_limits(arm), options)
    constraint.check_start(PANDA_START)
    folded = replace_joint(PANDA_START, 3, -3.0)
    folded[5] = 0.0
    with pytest.raises(ExcitationError, match=r"link 'panda_.*': comes to .* m from '.*' in the start pose, closer"):
        constraint.check_start(folded)


def replace_joint(pose, joint, value):
    out = pose.copy()
    out[joint] = value
    return out


def test_missing_meshes_are_told_and_lines_stand_in(arm, caplog):
    limits = replace(panda_limits(arm), velocity=panda_limits(arm).velocity * 0.99)
    urdf = arm.urdf.replace("package://", "package://absent_")
    assert urdf != arm.urdf
    with caplog.at_level(logging.WARNING):
        constraint = ClearanceConstraint(load_model(urdf, arm.options), limits, CollisionOptions(), floor=0.0)
    names = caplog.text
    assert "is not found" in names and "lines between their joints" in names
    names = {constraint.scene.names(pair) for pair in range(len(constraint.scene.pairs))}
    assert ("panda_link4", "floor") in names
    assert not any("panda_link4" in pair and "panda_link6" in pair for pair in names)


def test_without_meshes_the_distance_that_is_told_is_one_from_the_floor(arm):
    """It was that of nothing, at 0 % of what is allowed."""
    model = load_model(arm.urdf.replace("package://", "package://absent_"), arm.options)
    limits = panda_limits(arm)
    constraint = ClearanceConstraint(model, limits, CollisionOptions(), floor=-5.0)
    usage = constraint.usage(quick_plan(limits, PANDA_START, 3))
    assert usage.used > 0 and re.fullmatch("distance of 'panda_.*' from 'floor'", usage.description)


def test_an_overlap_that_the_library_cannot_measure_is_a_small_one(monkeypatch):
    """Coal returns its smallest number where it does not come to an end; its square is not finite."""

    class Result:
        normal = np.full(3, np.nan)

        def clear(self):
            pass

        def getNearestPoint1(self):  # noqa: N802, as the library names it
            return np.full(3, np.nan)

        getNearestPoint2 = getNearestPoint1  # noqa: N815

    tolerances = []

    class Library:
        DistanceRequest, DistanceResult = SimpleNamespace, Result
        Transform3s = Halfspace = staticmethod(lambda *_values: 1.0)

        @staticmethod
        def distance(first, at_1, second, at_2, request, result):
            tolerances.append(request.epa_tolerance)
            return -np.finfo(float).max if request.epa_tolerance < first else 0.25

    monkeypatch.setattr("inertid_ros.excitation.constraints.scene.collision_library", Library)
    exact, pose = ExactDistances(()), np.eye(4)[None, None]
    exact._geometry = [[(least, None, 1.0)] for least in (1e-6, 1.0)]
    pairs, one = np.array([[0, 1], [1, 0]]), np.zeros(2, dtype=int)
    found = exact.closest(pairs, one, np.zeros((2, 2), dtype=int), pose, np.full(2, 0.1))
    measured, unknown = found.distance
    assert measured == 0.25 and tolerances[:2] == [1e-8, 1e-6]
    assert -0.01 < unknown < 0
    assert np.isfinite(found.normal[:, 1]).all() and np.isfinite(found.points[..., 1]).all()


INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
TURNTABLE = f"""<robot name="turntable">
  <link name="base"><collision><geometry><box size="1 1 0.1"/></geometry></collision></link>
  <link name="plate">{INERTIAL}</link>
  <joint name="turn" type="revolute"><parent link="base"/><child link="plate"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" velocity="1" effort="100"/></joint>
  <link name="ball">{INERTIAL}
    <collision><origin xyz="0 0 0.25"/><geometry><sphere radius="0.2"/></geometry></collision></link>
  <joint name="lift" type="prismatic"><parent link="plate"/><child link="ball"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" velocity="1" effort="100"/></joint>
</robot>"""


@pytest.mark.parametrize(("lowest", "kept"), [(-0.002, True), (-0.02, False)])
def test_links_always_closer_than_the_clearance_are_kept_from_touching(lowest, kept, caplog):
    """A published finger whose links are 4 mm apart by design entered itself by 2 mm: the pair was left out."""
    model = load_model(TURNTABLE)
    limits = MotionLimits(
        model.joint_names, np.array([-1.0, lowest]), np.array([1.0, lowest + 0.01]), *np.ones((2, 2)), np.full(2, 99.0)
    )
    with caplog.at_level(logging.INFO):
        constraint = ClearanceConstraint(model, limits, CollisionOptions())
    assert len(constraint.scene.pairs) == kept
    told = "so only their contact is prevented" if kept else "close to each other, so their distance is not checked"
    assert f"{told}: base and ball" in caplog.text
    constraint.check_start(np.array([0.5, 0.001]))
    if kept:
        with pytest.raises(ExcitationError, match=r"'base': comes to -0\.0010 m from 'ball' .*, in contact with it;"):
            constraint.check_start(np.array([0.5, -0.001]))
