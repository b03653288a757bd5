"""The C++ headers: torque of the Python package, no allocation, what no controller can use, hand-over of parameters."""

import subprocess
from dataclasses import replace

import numpy as np
import pytest
from support.cpp import Case, compiled, compiled_dynamics, outcomes
from support.robots.random_robots import load_with, random_model, random_states, random_urdf

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from builtin_interfaces.msg import Time

from inertid_ros.config.robot import DRIVE_TERMS, TERM_SHAPES
from inertid_ros.core.samples import Samples
from inertid_ros.msg import InertialParameters, UserTerm as UserTermMessage
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.body_changes import perturb
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.layout import Coupling, UserTerm
from inertid_ros.ros.parameter_messages import known_parameters
from inertid_ros.ros.received_parameters import from_inertial_parameters

pytestmark = pytest.mark.timeout(600)  # the compiler takes 10 s of processor time, on a busy machine much longer
STATES = 100
FORMULAS = (
    "sin(2*q) - cos(q)**2", "-q**2", "2**-q", "-2**2*v", "q - v - a", "8/2/2*q", "2**3**-1*v", "tanh(v/0.1)*abs(load)",
    'min(q, q["joint0"]) * max(v, 1e-3)', "sqrt(abs(a)) + exp(-q*q)", " + (pi - .5) * sign( v ) ",
    "log(1 + v**2)*tan(q/9)", "q['joint1'] / (1 + load**2)", "direction*load", "--q", "3*-(q + 2.5E-1)",
)  # fmt: skip


@pytest.fixture(scope="module")
def program():
    return compiled_dynamics()


def _case(seed):
    """A robot with all terms; every third has a free base, and its drives change direction at once."""
    rng, free = np.random.default_rng(seed), seed % 3 == 2
    joints = int(rng.integers(2, 8))
    names = [f"joint{index}" for index in range(joints)]
    shapes = tuple(expression for expressions, _ in TERM_SHAPES.values() for expression in expressions)
    terms = () if free else tuple(UserTerm(name, name, tuple(rng.choice(FORMULAS, 3))) for name in names)
    motor = UserTerm.of_coupling("motor", f'2*q["{names[0]}"]*sin(q["{names[-1]}"]) - exp(q["{names[0]}"]/9)')
    terms = (*terms, UserTerm("shapes", names[0], () if free else shapes), motor)
    couplings = (Coupling("wrist", (names[0], names[-1]), (1.0, -2.5)),)
    base = "free" if free else "fixed"
    model = load_with(random_urdf(rng, joints), couplings, (), terms, base=base)
    speeds = tuple(np.where(rng.random(joints) < 0.5 * (not free), rng.uniform(0.01, 0.1, joints), 0.0))
    model = model.with_layout(transition_speeds=speeds, stribeck_speeds=tuple(rng.uniform(0.1, 0.3, joints)))
    layout = model.layout
    parameters = np.concatenate([perturb(model, rng).ravel(), rng.uniform(0, 1, layout.size - layout.body_size)])
    drives = {term: parameters[layout.drive(term)] for term in DRIVE_TERMS}
    message = known_parameters(model, layout.bodies(parameters), drives, Time(), parameters)
    states = random_states(rng, model, STATES)
    states = replace(states, v=states.v * (rng.random(states.v.shape) > 0.1))  # joints at rest, too
    q, v, a = states.q, states.v, states.a
    if free:
        pose = np.hstack([rng.normal(size=(STATES, 3)), rng.normal(size=(STATES, 4))])
        pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1, keepdims=True)
        q, v, a = np.hstack([pose, q]), *(np.hstack([rng.normal(size=(STATES, 6)), x]) for x in (v, a))
        states = Samples(states.time, q, v, a, np.zeros_like(v), np.ones(v.shape, dtype=bool), states.usable)
    model = replace(model, fitted_bodies=layout.bodies(parameters))
    return Case(model, message, (q, v, a)), parameters, states


def test_torque_is_that_of_the_python_package_without_allocation(program):
    cases = [_case(seed) for seed in range(12)]
    for (case, parameters, states), outcome in zip(cases, outcomes(program, [case for case, *_ in cases]), strict=True):
        model, layout = case.model, case.model.layout
        assert outcome.refused == "" and outcome.allocations == 0
        expected = ForceEquations(model).predict(parameters, states)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(outcome.torque, expected, rtol=0, atol=1e-12 * scale)
        gravity = rigid_torque(model, layout.bodies(parameters), states.q, 0 * states.v, 0 * states.a)
        np.testing.assert_allclose(outcome.gravity, gravity, rtol=0, atol=1e-12 * scale)
        friction = from_inertial_parameters(case.message).friction(states.v[:, -model.joints :])
        np.testing.assert_allclose(outcome.friction[:, -model.joints :], friction, rtol=0, atol=1e-12 * scale)
        assert not outcome.friction[:, : -model.joints].any()


def test_continuous_joints_of_pinocchio_have_the_same_torque(program):
    rng = np.random.default_rng(5)
    model = random_model(rng, 4)
    model = load_with(model.urdf.replace("prismatic", "revolute"))
    drives = {term: rng.uniform(0, 1, 4) for term in DRIVE_TERMS}
    message, states = known_parameters(model, perturb(model, rng), drives, Time()), random_states(rng, model, 20)
    message.terms = [UserTermMessage(name="spring", joint="joint2", expressions=["q**3"], values=[2.0])]
    cases = [Case(model, message, (states.q, states.v, states.a), continuous) for continuous in (False, True)]
    given, continuous = outcomes(program, cases)
    np.testing.assert_allclose(continuous.torque, given.torque, rtol=0, atol=1e-12 * np.abs(given.torque).max())


def _formula(text):
    return lambda message: setattr(message.terms[0], "expressions", [text, *message.terms[0].expressions[1:]])


def _set(path, **values):
    def change(message):
        for name, value in values.items():
            setattr(getattr(message, path)[0] if path else message, name, value)

    return change


REFUSED = {
    "belong to another robot": _set("", model_hash="\x1b]0;title\x07"),
    "did not pass their validation": _set("", validation_status=InertialParameters.REJECTED),
    "verdict is 'do not use'": _set("", verdict=77),
    "only_use is set": _set("", verdict=InertialParameters.USE_WITH_CARE),
    "links or joints differ": _set("joints", name="elbow"),
    "link 'link0' is not physically consistent": _set("links", mass=-1.0),
    "'joint0' has an impossible value": _set("joints", viscous=-1.0),
    "'joint0' has an impossible  value": _set("joints", offset=float("nan")),
    "'joint0' has an  impossible value": _set("joints", stribeck_speed=0.0),
    "'wrist' has an impossible value": _set("couplings", ratios=[float("inf"), 1.0]),
    "'wrist' has a wrong number of ratios": _set("couplings", ratios=[1.0]),
    "'wrist' repeats a joint": _set("couplings", joints=["joint0", "joint0"]),
    "they name a joint 'elbow'": _set("terms", joint="elbow"),
    "'spring' has a wrong number of values": _set("terms", values=[1.0]),
    "too many formulas": _set("terms", expressions=["q"] * 300, values=[1.0] * 300),
    "their torque at 'joint0'": _formula("1/v"),
    "their torque at 'joint0' is not finite": _formula("9**9**9"),
    "their torque at  'joint0'": _set("joints", coulomb=1e30),
    "their torque at 'joint0'  is not": _set("terms", values=[float("nan"), 1.0]),
    **{f"a term '{text}' is not a formula": _formula(text) for text in (
        "", "sin(", "sin(q", "sin q", "min(q)", "2q", "q**", "1_0", "1j", "inf", "q[joint1]", 'q["elbow"]', 'q["joint1',
        "__import__('os')", "x", "q;v", "2* *q", "q//2", "1e999", "(" * 600)},
}  # fmt: skip


def test_what_no_controller_can_use_is_refused_with_its_reason(program):
    model = random_model(np.random.default_rng(1), 3)
    empty = tuple(np.zeros((0, 3)) for _ in range(3))
    cases = []
    for change in REFUSED.values():
        couplings = (Coupling("wrist", ("joint0", "joint1"), (1.0, -1.0)),)
        terms = (UserTerm("spring", "joint0", ("q", "sin(q)")),)
        changed = model.with_layout(couplings=couplings, terms=terms)
        drives = {term: np.full(3, 0.1) for term in DRIVE_TERMS}
        message = known_parameters(changed, model.body_prior, drives, Time(), np.ones(changed.layout.size))
        message.verdict = InertialParameters.USE
        change(message)
        cases.append(Case(model, message, empty, only_use=True))
    for reason, outcome in zip(REFUSED, outcomes(program, cases), strict=True):
        assert " ".join(reason.split()) in outcome.refused and outcome.refused.isprintable()
        assert outcome.refused.endswith("; the last good parameters stay in use")


@pytest.mark.parametrize("sanitizer", [(), ("-fsanitize=thread",)], ids=["plain", "thread sanitizer"])
def test_new_parameters_are_taken_up_whole_and_in_order_under_a_writer_at_1_khz(sanitizer):
    program = compiled("handover.cpp", "-pthread", *sanitizer)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("NO THREAD SANITIZER: the kernel's address space randomization does not suit it")
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr[:3000]
