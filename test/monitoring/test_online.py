"""Online identification: causal filter, information with forgetting, warm Newton steps, and reported changes."""

from dataclasses import replace

import numpy as np
import pytest
from support.recordings.joint_state_stream import COULOMB, NOISE, PERIOD, known_arm, states

from inertid_ros.config.nodes import OnlineNodeOptions
from inertid_ros.core.errors import IdentificationError, RecordingError
from inertid_ros.core.inertial_parameters import is_consistent
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.information import compress
from inertid_ros.identification.solvers.map_problem import MapProblem
from inertid_ros.monitoring.change_detector import (
    Cause,
    Change,
    ChangeDetector,
    ChangeHistory,
    with_stream_noise,
)
from inertid_ros.monitoring.online_identification import OnlineIdentification, OnlineInformation
from inertid_ros.monitoring.streams import CausalFilter, StreamOptions
from inertid_ros.regressors.equations import equations_of
from inertid_ros.robot.layout import UserTerm

STREAM = StreamOptions(PERIOD, 10.0, velocity_noise=0.0)
PAYLOAD = Change(0.0, Cause.PAYLOAD, "hand", 2.0, 0.1, 100.0, 40.0, False)


@pytest.fixture(scope="module")
def arm():
    return known_arm()


def blocks(model, recorded, options=STREAM):
    causal = CausalFilter(model, options)
    return [block for state in zip(*recorded, strict=True) if (block := causal.push(*state)) is not None]


def test_the_filter_gives_the_motion_of_a_known_time_ago(arm):
    """A slow sinusoid comes out unchanged at its stamp, with its derivative; effort that is late is put back."""
    model, time, omega = arm.equations.model, np.arange(0.0, 3.0, PERIOD), 2 * np.pi * 0.7
    phases = np.arange(3)
    wave = lambda t: np.sin(omega * np.asarray(t)[:, None] + phases)  # noqa: E731
    slope = lambda t: omega * np.cos(omega * np.asarray(t)[:, None] + phases)  # noqa: E731
    late = 0.007
    options = replace(STREAM, effort_delay_s=late)
    causal = CausalFilter(model, options)
    found = blocks(model, (time, wave(time), slope(time), wave(time - late)), options)
    for block in found:
        np.testing.assert_allclose(block.q, wave(block.time), atol=2e-3)
        np.testing.assert_allclose(block.v, slope(block.time), atol=1e-2)
        np.testing.assert_allclose(block.a, -(omega**2) * wave(block.time), atol=5e-2)
        np.testing.assert_allclose(block.tau, wave(block.time), atol=2e-3)
    stamps = np.concatenate([block.time for block in found])
    np.testing.assert_allclose(np.diff(stamps), PERIOD, atol=1e-12)
    assert stamps[-1] <= time[-1] - causal.delay + 1e-9


def test_efforts_without_gravity_are_not_followed(arm):
    model = arm.equations.model.with_layout(compensation=True)
    robot = replace(arm, equations=equations_of(model), parameters=model.prior)
    with pytest.raises(IdentificationError, match="cannot be followed online"):
        OnlineIdentification(robot)


def test_the_filter_rejects_what_is_no_new_state_and_begins_anew_after_a_gap(arm):
    model = arm.equations.model
    time, q, v, effort = states(arm, 2.0)
    causal = CausalFilter(model, STREAM)
    for index in (0, 1, 1, 0, 2):
        causal.push(time[index], q[index], v[index], effort[index])
    causal.push(time[3], np.full(3, np.nan), v[3], effort[3])
    assert causal.rejected == 3 and causal.restarts == 0
    later = [causal.push(5.0 + t, *state) for t, *state in zip(time, q, v, effort, strict=True)]
    assert causal.restarts == 1
    first = next(block for block in later if block is not None)
    assert first.time[0] == pytest.approx(5.0 + causal.delay)
    with pytest.raises(RecordingError, match="cutoff 90 Hz does not suit a period of 0.005 s"):
        StreamOptions(PERIOD, 90.0)


def test_jittered_stamps_change_little(arm):
    model, rng = arm.equations.model, np.random.default_rng(0)
    time = np.arange(0.0, 2.0, PERIOD)
    jittered = time + rng.uniform(-0.3, 0.3, len(time)) * PERIOD
    wave = lambda t: np.sin(4.0 * np.asarray(t)[:, None] + np.arange(3))  # noqa: E731
    for block in blocks(model, (jittered, wave(jittered), 0 * wave(time), wave(jittered))):
        np.testing.assert_allclose(block.q, wave(block.time), atol=5e-3)


def test_without_forgetting_it_is_the_batch_result(arm):
    online = OnlineIdentification(arm)
    taken = blocks(arm.equations.model, states(arm, 10.0))
    for block in taken:
        online.add(block)
        estimate = online.solve()
        assert is_consistent(arm.layout.bodies(estimate.parameters)).all()
    information = compress(online.equations, taken)
    np.testing.assert_array_equal(information.counts, online.stream.information.counts)
    coordinates, regularization = online.map_problem(information)
    R, z = coordinates.normalise(*information.whitened(online.weights))
    batch = coordinates.physical(MapProblem(coordinates, online.equations.model.prior).solve(R, z, regularization).x)
    np.testing.assert_allclose(estimate.parameters, batch, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(estimate.covariance, estimate.covariance.T, atol=1e-12)
    assert estimate.steps < 20 and np.linalg.eigvalsh(estimate.hessian)[0] > 0


def test_known_terms_stay_as_they_are(arm):
    model = arm.equations.model
    spring = UserTerm("spring", model.joint_names[1], ("sin(q)",), values=(2.0,))
    sprung = replace(arm, equations=equations_of(model.with_layout(terms=(spring,))))
    parameters = sprung.equations.model.prior.copy()
    parameters[: len(arm.parameters)] = arm.parameters
    sprung = replace(sprung, parameters=parameters, covariance=np.diag((1e-3 * np.abs(parameters) + 1e-9) ** 2))
    online = OnlineIdentification(sprung)
    for block in blocks(model, states(arm, 4.0)):  # of a robot without the spring
        online.add(block)
    found = dict(zip(sprung.layout.names, online.solve().parameters, strict=True))
    assert found["spring.sin(q)"] == pytest.approx(2.0, abs=1e-5)


def test_what_is_forgotten_counts_as_stated(arm):
    """The Gram matrix is the weighted sum of those of the blocks."""
    stream = OnlineInformation(arm.equations, OnlineNodeOptions(time_constant_s=1.5))
    taken = blocks(arm.equations.model, states(arm, 9.0))
    for block in taken:
        stream.add(block)
    total = 0.0
    for block in taken:
        R, _ = compress(arm.equations, [block]).whitened(np.ones(3))
        total = total + np.exp(-(taken[-1].time[-1] - block.time[-1]) / 1.5) * R.T @ R
    R, _ = stream.information.whitened(np.ones(3))
    np.testing.assert_allclose(R.T @ R, total, rtol=1e-8, atol=1e-8 * np.abs(total).max())


def test_a_window_holds_its_length(arm):
    stream = OnlineInformation(arm.equations, OnlineNodeOptions(window_s=2.0))
    for block in blocks(arm.equations.model, states(arm, 9.0)):
        stream.add(replace(block, mask=np.ones_like(block.mask)))
    assert 1.8 / PERIOD <= stream.information.counts[0] <= 2.4 / PERIOD


def test_parameters_follow_a_robot_that_changes(arm):
    layout, model = arm.layout, arm.equations.model
    bodies = layout.bodies(arm.parameters).copy()
    bodies[2] *= 1.5
    online = OnlineIdentification(arm, OnlineNodeOptions(time_constant_s=1.0))
    for block in blocks(model, states(arm, 12.0, changes=[(4.0, bodies, COULOMB)])):
        online.add(block)
        estimate = online.solve()
        assert is_consistent(layout.bodies(estimate.parameters)).all()
    samples = blocks(model, states(arm, 3.0, seed=9, changes=[(0.0, bodies, COULOMB)]))[3]
    error = [
        np.linalg.norm((samples.tau - arm.equations.predict(parameters, samples))[samples.mask])
        for parameters in (estimate.parameters, arm.parameters)
    ]
    assert error[0] < 0.1 * error[1]


def told(arm, changes, seconds=5.0, seed=3):
    """First and settled change; none may come before it happens."""
    model = arm.equations.model
    robot = with_stream_noise(arm, blocks(model, states(arm, 10.0, seed=30)))
    detector, first = ChangeDetector(robot), None
    for block in blocks(model, states(arm, seconds, seed, changes)):
        change = detector.add(block)
        if change is not None:
            assert changes and change.time >= changes[0][0] - 0.15, change
            first = first or change
            if change.settled:
                return first, change
    return first, None


def test_nothing_is_told_while_nothing_changes(arm):
    assert told(arm, (), seconds=60.0) == (None, None)


def test_payload_lost_part_and_friction_are_told_apart(arm):
    bodies = arm.layout.bodies(arm.parameters)
    heavier, lighter = bodies.copy(), bodies.copy()
    heavier[2] *= 1.3
    lighter[2] *= 0.7
    for changed, coulomb, cause, subject in (
        (heavier, COULOMB, Cause.PAYLOAD, "link2"),
        (lighter, COULOMB, Cause.LOST_PART, "link2"),
        (bodies, COULOMB + np.array([0.0, 0.6, 0.0]), Cause.RISING_FRICTION, "joint1"),
    ):
        first, settled = told(arm, [(2.0, changed, coulomb)])
        assert first is not None and first.time < 2.4
        assert (settled.cause, settled.subject) == (cause, subject)
        assert settled.ratio > settled.threshold
    mass = told(arm, [(2.0, heavier, COULOMB)])[1]
    assert mass.amount == pytest.approx(0.3 * bodies[2, 0], abs=4 * mass.deviation + 0.05 * bodies[2, 0])


def test_the_threshold_keeps_the_stated_rate_of_false_alarms(arm):
    """At a rate so high that it can be counted: noise alone, no more alarms than stated."""
    rng, model = np.random.default_rng(2), arm.equations.model
    certain = replace(arm, covariance=np.zeros_like(arm.covariance))
    (pattern,) = blocks(model, states(arm, 0.42))[:1]
    per_hour, tests, alarms = 864.0, 800, 0
    detector = ChangeDetector(certain, OnlineNodeOptions(change_window_s=0.12, false_alarms_per_hour=per_hour))
    pattern = replace(pattern, undecimated=None, mask=np.ones_like(pattern.mask))
    clean = arm.equations.predict(arm.parameters, pattern)
    for index in range(tests):
        noisy = replace(pattern, time=pattern.time + index * 0.125, tau=clean + NOISE * rng.normal(size=clean.shape))
        alarms += detector.add(noisy) is not None
    expected = per_hour * tests * 0.125 / 3600
    assert alarms <= expected + 4 * np.sqrt(expected) + 1


def reported(history, found, begin, tested=True):
    """Times at which something is told while a detector finds the same, in half a second or as long as given."""
    times, count = [], 5
    for index in range(count):
        time = begin + 0.1 * (index + np.linspace(0.0, 0.1, 3) / 0.1)
        empty, every = np.zeros((3, 1)), np.ones((3, 1), dtype=bool)
        block = Samples(time, empty, empty, empty, empty, every, every[:, 0])
        change = None if found is None else replace(found, time=float(time[-1]))
        if history.add(change, tested, block):
            times.append(round(float(time[-1]), 3))
    return times


def test_a_change_is_told_when_it_is_found_settled_and_over():
    history = ChangeHistory()
    assert reported(history, None, 0.0) == [0.1] and history.current is None
    assert reported(history, PAYLOAD, 1.0) == [1.1] and history.since == 1.1
    assert reported(history, replace(PAYLOAD, settled=True), 1.5) == [1.6] and history.since == 1.1
    assert reported(history, PAYLOAD, 2.0) == []
    assert [reported(history, None, 2.5 + 0.5 * step) for step in range(4)] == [[], [], [], [4.5]]
    assert history.current is None


def test_a_robot_at_rest_shows_nothing():
    history = ChangeHistory()
    assert reported(history, None, 0.0, tested=False) == []
    reported(history, PAYLOAD, 1.0)
    for begin in np.arange(2.0, 10.0, 0.5):
        assert reported(history, None, begin, tested=False) == []
    assert history.current is not None


def test_another_explanation_is_told_after_a_second():
    history = ChangeHistory()
    settled = replace(PAYLOAD, settled=True)
    reported(history, settled, 0.0)
    other = replace(settled, cause=Cause.RISING_FRICTION, subject="wrist")
    assert reported(history, other, 0.5) == [] and reported(history, settled, 1.0) == []
    assert [reported(history, other, 1.5 + 0.5 * step) for step in range(3)] == [[], [], [2.6]]
    assert history.current.subject == "wrist"
