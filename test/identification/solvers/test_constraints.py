"""Hard constraints, and friction of the prior that the data contradict."""

from dataclasses import replace

import numpy as np
import pytest
from support.robots.random_robots import random_model, random_states, random_urdf

from inertid_ros.config.identification import (
    SOLVERS,
    ConstraintOptions,
    EllipsoidOptions,
    IdentifyOptions,
    MirrorOptions,
)
from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.arrays import skew
from inertid_ros.core.errors import ConfigurationError, IdentificationError
from inertid_ros.core.inertial_parameters import (
    Ellipsoid,
    from_mass_com_inertia,
    from_pseudo_inertia,
    inertia_about_origin,
    is_consistent,
    is_semi_consistent,
    mass_com_inertia,
    pseudo_inertia,
    transform,
)
from inertid_ros.identification.assessment.plausibility import plausibility
from inertid_ros.identification.identify import identify
from inertid_ros.identification.information.information import compress
from inertid_ros.identification.solvers.constraints import Constraints, configured_constraints, constrained
from inertid_ros.identification.solvers.coordinates import normalised_coordinates, prior_coordinates
from inertid_ros.identification.solvers.interior_point import solve
from inertid_ros.identification.solvers.regularizers import Regularization, regularized
from inertid_ros.identification.solvers.third_party import cvxpy_problem, solve_by_cvxpy
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.link_shapes import collision_ellipsoids
from inertid_ros.robot.model import load_model


def _body_of_points(points: np.ndarray, masses: np.ndarray) -> np.ndarray:
    homogeneous = np.column_stack([points, np.ones(len(points))])
    return from_pseudo_inertia(homogeneous.T @ (masses[:, None] * homogeneous))


def _random_ellipsoid(rng: np.random.Generator) -> Ellipsoid:
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return Ellipsoid.from_axes(rng.normal(size=3), rotation, rng.uniform(0.05, 0.5, 3))


def _points(rng: np.random.Generator, ellipsoid: Ellipsoid, scale: float, count: int = 40) -> np.ndarray:
    directions = rng.normal(size=(count, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return ellipsoid.centre + scale * directions @ np.linalg.cholesky(ellipsoid.shape).T


@pytest.mark.parametrize("seed", range(4))
def test_bodies_of_points_inside_are_realizable_and_outside_are_not(seed):
    rng = np.random.default_rng(seed)
    ellipsoid = _random_ellipsoid(rng)
    inside = _body_of_points(_points(rng, ellipsoid, 0.99), rng.uniform(0, 1, 40))
    outside = _body_of_points(_points(rng, ellipsoid, 1.01), rng.uniform(0, 1, 40))
    assert ellipsoid.row @ inside > 0 > ellipsoid.row @ outside
    assert ellipsoid.row @ inside == pytest.approx(np.trace(pseudo_inertia(inside) @ ellipsoid.quadric))


@pytest.mark.parametrize("seed", range(4))
def test_com_block_is_positive_exactly_inside(seed):
    rng = np.random.default_rng(seed)
    ellipsoid = _random_ellipsoid(rng)
    for scale, sign in ((0.98, 1), (1.02, -1)):
        point = _points(rng, ellipsoid, scale, 1)
        body = _body_of_points(point, np.array([2.0]))
        assert np.sign(np.linalg.eigvalsh((ellipsoid.com_block() @ body).reshape(4, 4))[0]) == sign


def test_enclosing_ellipsoids_touch_the_corners():
    rng = np.random.default_rng(0)
    rotation, half = np.linalg.qr(rng.normal(size=(3, 3)))[0], np.array([0.1, 0.2, 0.3])
    box = Ellipsoid.around_box(np.ones(3), rotation, half)
    cylinder = Ellipsoid.around_cylinder(np.ones(3), rotation, 0.1, 0.6)
    for ellipsoid, corner in ((box, half), (cylinder, np.array([0.1, 0.0, 0.3]))):
        offset = rotation @ corner
        assert offset @ np.linalg.inv(ellipsoid.shape) @ offset == pytest.approx(1.0)


def _experiment(seed: int = 0, count: int = 400):
    """Noisy samples of a robot whose first link is 60 % heavier than its URDF says."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, 3, branched=False)
    truth = model.prior.copy()
    truth[:10] *= 1.6
    samples = random_states(rng, model, count)
    tau = ForceEquations(model).predict(truth, samples)
    return model, replace(samples, tau=tau + 0.3 * np.abs(tau).mean() * rng.normal(size=tau.shape)), truth


def test_masses_are_held():
    model, samples, truth = _experiment()
    mass = {"link2": (0.5 * truth[20], 0.6 * truth[20])}
    total = 1.1 * truth[:30:10].sum()
    estimate = identify(model, [samples], constraints=Constraints(mass=mass, total_mass=total))
    masses = estimate.bodies[:, 0]
    assert 0.5 * truth[20] - 1e-6 <= masses[2] <= 0.6 * truth[20] + 1e-6
    assert masses.sum() == pytest.approx(total, rel=1e-7)
    assert estimate.consistent


def test_fixed_equal_and_bounded_parameters():
    model, samples, _ = _experiment()
    constraints = Constraints(
        fixed=("link1.Ixx", "link2.m"), equal={"joint0.viscous": "joint1.viscous"}, at_most={"joint2.coulomb": 1e-3})
    estimate = identify(model, [samples], constraints=constraints)
    values = dict(zip(estimate.layout.names, estimate.parameters, strict=True))
    assert values["link1.Ixx"] == pytest.approx(model.body_prior[1, 4], rel=1e-7)
    assert values["link2.m"] == pytest.approx(model.body_prior[2, 0], rel=1e-7)
    assert values["joint0.viscous"] == pytest.approx(values["joint1.viscous"], rel=1e-6)
    assert values["joint2.coulomb"] <= 1e-3 + 1e-8


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("regularizer", ["entropic", "pullback", "point_mass"])
def test_what_cannot_be_negative_is_held_at_zero(regularizer, solver):
    model, samples, _ = _experiment()
    held = ("joint0.coulomb", "joint2.viscous")
    columns = [model.layout.names.index(name) for name in held]
    assert not model.prior[columns].any()
    options = IdentifyOptions(regularizer=regularizer, solver=solver)
    estimate = identify(model, [samples], options, Constraints(fixed=held))
    assert not estimate.parameters[columns].any()
    np.testing.assert_allclose(estimate.standard_deviation[columns], 0.0, atol=1e-9)
    assert estimate.consistent


def test_mirrored_links():
    model, samples, _ = _experiment()
    estimate = identify(model, [samples], constraints=Constraints(mirrored={"link0": MirrorOptions("link2", "y")}))
    mirror = transform(estimate.bodies[0], np.diag([1.0, -1.0, 1.0]), np.zeros(3))
    np.testing.assert_allclose(mirror, estimate.bodies[2], atol=1e-7 * np.abs(mirror).max())
    com = mass_com_inertia(estimate.bodies).com
    assert com[0, 1] == pytest.approx(-com[2, 1], abs=1e-7)


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_mass_stays_inside_ellipsoids(parts):
    """Ellipsoids that exclude the unconstrained estimate; the constrained one is realizable within their union."""
    model, samples, _ = _experiment()
    free = identify(model, [samples])
    mass, com, _ = mass_com_inertia(free.bodies[1])
    shapes = tuple(
        Ellipsoid.from_axes(com + np.array([0.3, 0.05 * part, 0.0]), np.eye(3), [0.2, 0.1, 0.1])
        for part in range(parts))
    assert all(shape.row @ free.bodies[1] < 0 for shape in shapes)
    estimate = identify(model, [samples], constraints=Constraints(inside={"link1": shapes}))
    assert estimate.consistent
    if parts == 1:
        assert shapes[0].row @ estimate.bodies[1] > -1e-7 * mass
    center = mass_com_inertia(estimate.bodies[1]).com
    assert center[0] > com[0] + 0.1 - 1e-3  # no point of the union is further left
    assert estimate.solution.objective > free.solution.objective


def test_centre_of_mass_stays_inside():
    model, samples, _ = _experiment()
    com = mass_com_inertia(identify(model, [samples]).bodies[1]).com
    shape = Ellipsoid.from_axes(com + 0.2, np.eye(3), np.full(3, 0.1))
    estimate = identify(model, [samples], constraints=Constraints(com_inside={"link1": shape}))
    offset = mass_com_inertia(estimate.bodies[1]).com - shape.centre
    assert np.linalg.norm(offset) == pytest.approx(0.1, rel=1e-3)


def test_configured_ellipsoids_hold_mass_and_centre():
    model, samples, _ = _experiment()
    com = mass_com_inertia(identify(model, [samples]).bodies[1]).com
    turned = {"link": "link1", "semi_axes": (0.1, 0.2, 0.1), "rpy": (0.0, 0.0, np.pi / 2)}  # long along x
    given = {
        "case": EllipsoidOptions(**turned, centre=tuple(com + [0.3, 0.0, 0.0])),
        "lid": EllipsoidOptions(**turned, centre=tuple(com + [0.3, 0.05, 0.0])),
        "core": EllipsoidOptions(
            "link2", (0.05, 0.05, 0.05), tuple(mass_com_inertia(model.body_prior[2]).com), holds="com")}
    constraints = configured_constraints(model, ConstraintOptions(ellipsoids=given))
    assert set(constraints.inside) == {"link1"} and set(constraints.com_inside) == {"link2"}
    case, lid = constraints.inside["link1"]
    np.testing.assert_allclose(case.shape, np.diag([0.2, 0.1, 0.1]) ** 2, atol=1e-12)
    np.testing.assert_allclose(lid.centre - case.centre, [0, 0.05, 0])
    estimate = identify(model, [samples], constraints=constraints)
    assert estimate.consistent and mass_com_inertia(estimate.bodies[1]).com[0] > com[0] + 0.1 - 1e-3
    assert np.linalg.norm(mass_com_inertia(estimate.bodies[2]).com - given["core"].centre) < 0.05 * (1 + 1e-6)
    with pytest.raises(ConfigurationError, match="hold the centre of mass of 'link2' twice"):
        ConstraintOptions(ellipsoids={"a": given["core"], "b": given["core"]})


def test_clarabel_agrees_under_constraints():
    model, samples, truth = _experiment(count=100)
    com = mass_com_inertia(model.body_prior[1]).com
    shapes = [Ellipsoid.from_axes(com + shift, np.eye(3), np.full(3, 0.2)) for shift in (0.0, 0.1)]
    constraints = Constraints(
        inside={"link1": tuple(shapes)}, com_inside={"link2": shapes[0]}, total_mass=truth[:30:10].sum())
    layout = model.layout
    coordinates = normalised_coordinates(
        layout, model.body_prior, model.body_locked, np.zeros(layout.size - 30), np.ones(layout.size - 30))
    R, z = coordinates.normalise(*compress(model, [samples]).whitened(np.ones(3)))
    for regularizer in ("entropic", "pullback"):
        convex_program = regularized(R, z, layout, Regularization(regularizer, 0.5, 1.0, 20.0))
        convex_program = constrained(convex_program, constraints, coordinates, model.prior)
        start = np.zeros(convex_program.R.shape[1])
        start[: layout.size] = coordinates.prior
        start[layout.non_negative] = 1.0
        ours, reference = solve(convex_program, start), solve_by_cvxpy(convex_program)
        assert ours.objective == pytest.approx(reference.objective, rel=1e-6)


def _spatial_inertia_blocks(bodies, sizes):
    """``[[I, S(h)], [S(h)^T, m 1]] >= 0`` of CVXPY's expressions ``bodies`` ([Wensing2018]_ thm. 1)."""
    basis = [
        np.block([[inertia_about_origin(unit), skew(unit[1:4])], [skew(unit[1:4]).T, unit[0] * np.eye(3)]])
        for unit in np.eye(10)]
    for body, size in zip(bodies, sizes, strict=True):
        scale = np.diag(np.sqrt(1 / np.repeat([inertia_about_origin(size).trace(), size[0]], 3)))
        yield sum(body[k] * scale @ block @ scale for k, block in enumerate(basis)) >> 0


@pytest.mark.parametrize("seed", range(3))
def test_semi_consistency_is_a_positive_definite_spatial_inertia(seed):
    """Data of bodies that break the triangle inequality (first kept), or have no positive inertia (second bounded)."""
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(seed)
    model = random_model(rng, 2, branched=False)
    layout, target = model.layout, model.prior.copy()
    coordinates = normalised_coordinates(
        layout, model.body_prior, model.body_locked, np.zeros(layout.size - 20), np.ones(layout.size - 20))
    mass, com, inertia = mass_com_inertia(model.body_prior)
    vectors = np.linalg.eigh(inertia)[1]
    for body, moments in enumerate(([0.2, 0.3, 0.9], [-0.3, 0.3, 0.9])):
        turned = vectors[body] * np.array(moments) * inertia[body].trace() @ vectors[body].T
        target[10 * body : 10 * body + 10] = from_mass_com_inertia(mass[body], com[body], turned)
    R = rng.normal(size=(layout.size, layout.size)) / np.abs(coordinates.matrix).max(axis=1)
    R, z = coordinates.normalise(R, R @ target)
    plain = regularized(R, z, layout, Regularization("pullback", 100.0, 1e-6, 20.0))
    program = constrained(plain, Constraints(consistency="semi"), coordinates, model.prior)
    start = np.zeros(program.R.shape[1])
    start[: layout.size] = coordinates.prior
    start[layout.non_negative] = 1.0
    solution = solve(program, start)
    problem, x = cvxpy_problem(replace(plain, body_weights=np.zeros(0)))
    physical = coordinates.offset + coordinates.matrix @ x
    bodies = [physical[:10], physical[10:20]]
    lmi = list(_spatial_inertia_blocks(bodies, model.body_prior))
    reference = cp.Problem(problem.objective, problem.constraints + lmi).solve(solver=cp.CLARABEL)
    assert solution.objective == pytest.approx(reference, rel=1e-5, abs=1e-6)
    found = coordinates.physical(solution.x[: layout.size])[:20].reshape(2, 10)
    assert not is_consistent(found[0]) and is_semi_consistent(found[0])
    moments = np.linalg.eigvalsh(mass_com_inertia(found[1]).inertia)
    assert abs(moments[0]) < 1e-5 * moments[-1]


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (Constraints(mass={"nowhere": (0.0, 1.0)}), "no moving link 'nowhere'"),
        (Constraints(fixed=("link0.weight",)), "no parameter 'link0.weight'"),
        (Constraints(mass={"link0": (100.0, 101.0)}, total_mass=3.0), "contradict")])
def test_impossible_constraints_are_named(constraints, message):
    model, samples, _ = _experiment(count=50)
    with pytest.raises(IdentificationError, match=message):
        identify(model, [samples], constraints=constraints)


def test_collision_geometry_bounds_real_links(robots, datasets):
    model = load_model(datasets / "kuka_lwr4" / "kuka_lwr4.urdf")
    shapes = collision_ellipsoids(model)
    assert len(shapes["lwr_1_link"]) == 3
    folder = robots / "panda_description"
    panda = load_model(folder / "urdf/panda.urdf", RobotOptions(locked_joints={"panda_finger_joint1": 0.0}))
    for link, ellipsoids in collision_ellipsoids(panda, (str(robots.parent.parent),)).items():
        com = mass_com_inertia(panda.body_prior[panda.link_names.index(link)]).com
        radius = min((com - e.centre) @ np.linalg.solve(e.shape, com - e.centre) for e in ellipsoids)
        assert radius < 1.5, link


@pytest.mark.parametrize(("friction", "used"), [(1e4, False), (0.1, True)])
def test_impossible_friction_is_told_and_not_used(friction, used):
    text = random_urdf(np.random.default_rng(1), 2, branched=False)
    model = load_model(text.replace("</joint>", f'<dynamics damping="{friction}" friction="{friction}"/></joint>'))
    without = load_model(text)
    samples = random_states(np.random.default_rng(2), without, 200)
    samples = replace(samples, tau=ForceEquations(without).predict(without.prior, samples))
    coordinates = prior_coordinates(model, compress(model, [samples]))
    drives = coordinates.physical(coordinates.prior)[model.layout.drive("viscous")]
    np.testing.assert_allclose(drives, friction if used else 0.0)
    told = [str(each) for each in plausibility(identify(model, [samples])) if each.cause == "friction_excluded"]
    assert len(told) == (not used)
    assert all(f"{model.joint_names[0]}.viscous 10000" in line and "not used" in line for line in told)
