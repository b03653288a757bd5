"""Payloads: the equations of what a robot holds, the bodies that they leave possible, and the tool frame."""

import re
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from support.recordings.synthetic import random_motion
from support.robots.random_robots import random_urdf

from inertid_ros.core.errors import ModelError
from inertid_ros.core.inertial_parameters import from_mass_com_inertia, inertia_about_origin, is_consistent, transform
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.information import compress
from inertid_ros.payload.equations import (
    CalibratedRobot,
    FrictionDrift,
    PayloadEquations,
    ToolFrame,
    friction_drift_root,
    payload_equations,
)
from inertid_ros.payload.payload import Payload, Quantity, as_robots_take_it, sample_bodies, shortest_interval
from inertid_ros.regressors.equations import dense_equations, equations_of
from inertid_ros.robot.model import load_model

DEVIATION = 0.05


def arm_and_samples(seed=3, count=120):
    rng = np.random.default_rng(seed)
    model = load_model(random_urdf(rng, 3, branched=False))
    time = 0.02 * np.arange(count)
    q, v, a = random_motion(rng, 3).sample(time)
    every = np.ones(q.shape, dtype=bool)
    return rng, model, Samples(time, q, v, a, rng.normal(size=q.shape), every, every[:, 0])


def dense(equations, samples):
    """Regressor ``(N c, p)`` and measured side ``(N c,)`` of all samples."""
    rows, sides = [], []
    for chunk in dense_equations(equations, samples):
        for channel, (A, b) in enumerate(chunk):
            whole = np.zeros((len(b), equations.model.layout.size))
            whole[:, equations.columns[channel]] = A
            rows.append(whole)
            sides.append(b)
    return np.vstack(rows), np.concatenate(sides)


@pytest.mark.parametrize("with_reference", [False, True])
def test_what_is_known_of_the_robot_is_marginalised_out(with_reference):
    """The ten rows are the generalised least squares whose covariance holds robot, drift and noise."""
    rng, model, loaded = arm_and_samples()
    _, _, unloaded = arm_and_samples(seed=3, count=80)
    unloaded = replace(unloaded, tau=rng.normal(size=unloaded.tau.shape))
    equations, size = equations_of(model), model.layout.size
    root = rng.normal(size=(size, size)) * 0.01
    x = model.prior + 0.01 * rng.normal(size=size)
    x[model.layout.drive("coulomb")] = 0.3
    robot = CalibratedRobot(equations, x, root @ root.T, np.full(3, DEVIATION), np.full(3, 50.0))
    placement = transform(np.eye(10), pin.rpy.rpyToMatrix(0.3, -0.5, 1.0), np.array([0.1, 0.2, -0.1])).T
    tool, drift = ToolFrame("link", 2, placement), FrictionDrift(0.2, 0.1)
    groups = [loaded, unloaded] if with_reference else [loaded]
    weights = np.full(3, 1 / DEVIATION)
    found = payload_equations(robot, tool, tuple((compress(equations, [g]), weights) for g in groups), drift)

    A, b = zip(*(dense(equations, group) for group in groups), strict=True)
    common = np.hstack([root, friction_drift_root(model.layout, x, 0.2)])
    own = friction_drift_root(model.layout, x, 0.1) if with_reference else np.zeros((size, 1))
    errors = [np.hstack([A[0] @ common, A[0] @ own])]
    errors += [np.hstack([each @ common, np.zeros((len(each), own.shape[1]))]) for each in A[1:]]
    errors = np.vstack(errors)
    held = A[0][:, model.layout.body(2)] @ placement
    held = np.vstack([held, np.zeros((len(errors) - len(held), 10))])
    inverse = np.linalg.inv(DEVIATION**2 * np.eye(len(errors)) + errors @ errors.T)
    side = np.concatenate([each - rows @ x for rows, each in zip(A, b, strict=True)])
    np.testing.assert_allclose(found.R.T @ found.R, held.T @ inverse @ held, rtol=1e-6, atol=1e-4)
    np.testing.assert_allclose(found.R.T @ found.z, held.T @ inverse @ side, rtol=1e-6, atol=1e-5)


def test_a_reference_counts_for_joints_that_the_loaded_recording_does_not_move():
    """The reference's uncertainty must not contain that of a payload that nothing determines."""
    rng, model, loaded = arm_and_samples()
    resting = replace(loaded, mask=np.array([[True, False, False]] * len(loaded)))
    robot = CalibratedRobot(
        equations_of(model), model.prior, 1e-6 * np.eye(model.layout.size), np.full(3, DEVIATION), np.full(3, 50.0))
    weights = np.full(3, 1 / DEVIATION)
    groups = tuple((compress(robot.equations, [each]), weights) for each in (resting, loaded))
    found = payload_equations(robot, ToolFrame("link", 2, np.eye(10)), groups, FrictionDrift(0.2, 0.1))
    predicted = groups[1][0].channels[2]
    assert predicted.expected_square(found.loaded_covariance) > 1.0
    assert predicted.expected_square(found.reference_covariance) < (5 * DEVIATION) ** 2 * len(loaded)


def test_far_from_the_border_the_samples_are_those_of_the_normal_distribution():
    body = from_mass_com_inertia(2.0, [0.02, -0.03, 0.1], np.diag([0.02, 0.025, 0.03]))
    deviation = np.array([2e-3, *[2e-4] * 3, *[1e-5] * 6])
    equations = equations_with(np.diag(1 / deviation), body / deviation)
    drawn = from_mass_com_inertia(*sample_bodies(equations))
    np.testing.assert_allclose(drawn.std(axis=0), deviation, rtol=0.1)
    assert np.abs((drawn.mean(axis=0) - body) / deviation).max() < 0.2
    assert is_consistent(drawn).all()


def test_a_payload_below_the_noise_has_an_interval_from_zero():
    equations = equations_with(np.diag(1 / np.array([0.05, *[0.01] * 3, *[0.02] * 6])), np.zeros(10))
    drawn = sample_bodies(equations)
    low, high = shortest_interval(drawn.mass, least=0.0)
    assert low == 0.0 and 0.05 < high < 0.15
    assert is_consistent(from_mass_com_inertia(*drawn)).all()


def equations_with(R, z):
    zero = np.zeros(1)
    return PayloadEquations(R, z, np.linalg.solve(R, z), zero, zero, np.zeros((1, 1)), np.zeros((1, 1)), 0.0)


def test_the_tool_frame_places_what_it_holds_as_pinocchio_does():
    _, model, _ = arm_and_samples()
    assert ToolFrame.from_link(model).body == 2
    name = model.link_names[1]
    tool = ToolFrame.from_link(model, name)
    own = pin.Inertia(1.5, np.array([0.1, 0.0, 0.2]), np.diag([0.1, 0.2, 0.25]))
    frame = model.pinocchio.frames[model.pinocchio.getFrameId(name)]
    added = tool.bodies(own.toDynamicParameters(), 3)
    np.testing.assert_allclose(added[1], frame.placement.act(own).toDynamicParameters(), atol=1e-12)
    assert not added[[0, 2]].any()
    with pytest.raises(ModelError, match="has no link 'hand'.*--frame"):
        ToolFrame.from_link(model, "hand")


def _payload_with(inertia, com=(0.1, 0.2, 0.3)):
    def fixed(value):
        return Quantity(value, 0.0, (value, value))

    return Payload(
        ToolFrame("tool0", 0, np.eye(10)), fixed(2.0), tuple(map(fixed, com)), tuple(map(fixed, inertia)),
        np.zeros((10, 10)), np.zeros(0), equations_with(np.eye(10), np.zeros(10)),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_principal_axes_of_robots_give_the_inertia_back(seed):
    """KUKA turns about z, the new y and the newest x; ABB takes a quaternion, w first; both take millimetres."""
    rng = np.random.default_rng(seed)
    square = rng.normal(size=(3, 3))
    inertia = square @ square.T + 0.1 * np.eye(3)
    taken = as_robots_take_it(_payload_with(inertia[np.triu_indices(3)], rng.normal(size=3)))
    mass, x, y, z, *angles, jx, jy, jz = map(float, re.findall(r"-?[\d.]+", taken["LOAD"]))
    turn = np.eye(3)
    for angle, (i, j) in zip(np.radians(angles), ((0, 1), (2, 0), (1, 2)), strict=True):
        step = np.eye(3)
        step[[i, j], [i, j]], step[i, j], step[j, i] = np.cos(angle), -np.sin(angle), np.sin(angle)
        turn = turn @ step
    np.testing.assert_allclose(turn @ np.diag([jx, jy, jz]) @ turn.T, inertia, atol=1e-4)
    rapid = [float(number) for number in re.findall(r"-?[\d.]+", taken["loaddata"])]
    w, *axis = rapid[4:8]
    turn = pin.Quaternion(w, *axis).toRotationMatrix()
    np.testing.assert_allclose(turn @ np.diag(rapid[8:]) @ turn.T, inertia, atol=1e-4)
    com = 1e3 * np.array(taken["setLoad"]["F_x_Cload"])
    np.testing.assert_allclose([(x, y, z), rapid[1:4]], [com, com], atol=1e-5)
    assert mass == rapid[0] == 2.0


def test_robots_take_inertia_about_the_centre_of_mass():
    """In their order: URScript xx yy zz xy xz yz, libfranka column after column, ROS named."""

    payload = _payload_with((0.1, 0.01, 0.02, 0.2, 0.03, 0.25))
    taken = as_robots_take_it(payload)
    assert taken["set_target_payload"]["inertia"] == [0.1, 0.2, 0.25, 0.01, 0.02, 0.03]
    assert taken["setLoad"]["load_inertia"] == [0.1, 0.01, 0.02, 0.01, 0.2, 0.03, 0.02, 0.03, 0.25]
    assert taken["endeffector-config.json"]["inertia"] == taken["setLoad"]["load_inertia"]
    message = taken["geometry_msgs/InertiaStamped"]["inertia"]
    assert (message["ixx"], message["iyz"], message["com"]["z"]) == (0.1, 0.03, 0.3)
    shift = np.array([0.1, 0.2, 0.3])
    about_origin = payload.inertia_matrix + 2.0 * (shift @ shift * np.eye(3) - np.outer(shift, shift))
    np.testing.assert_allclose(inertia_about_origin(payload.parameters), about_origin)
