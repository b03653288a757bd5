"""Message streams to synchronised samples."""

import numpy as np
import pytest

from inertid_ros.core.errors import RecordingError
from inertid_ros.data.assembly import RecordingAssembler, StampOrderError, interpolate
from inertid_ros.data.long_recording import recording_from_blocks

MS = 1_000_000


def _fill(assembler, count=20, names=("a", "b"), start=10**18, velocity=True):
    rng = np.random.default_rng(0)
    for k in range(count):
        q, v, tau = rng.normal(size=(3, len(names)))
        assembler.add_joint_states(names, start + 5 * MS * k, q, v if velocity else (), tau)
    return assembler


def test_time_counts_in_seconds_from_the_first_stamp():
    recording = _fill(RecordingAssembler("bag")).recording()
    assert np.array_equal(recording.time, 5 * MS * np.arange(20) * 1e-9)
    assert recording.joint_names == ("a", "b") and recording.name == "bag"
    assert recording.velocity is not None


def test_messages_that_list_the_joints_in_another_order_are_reordered():
    assembler = RecordingAssembler()
    assembler.add_joint_states(["a", "b"], 1, [1, 2], [3, 4], [5, 6])
    assembler.add_joint_states(["b", "a"], 2, [2, 1], [4, 3], [6, 5])
    recording = assembler.recording()
    assert np.array_equal(recording.position, [[1, 2], [1, 2]])
    assert np.array_equal(recording.velocity, [[3, 4], [3, 4]])
    assert np.array_equal(recording.effort, [[5, 6], [5, 6]])


def test_chosen_joints_are_picked_and_messages_of_others_skipped():
    assembler = RecordingAssembler(joints=("b",))
    assert assembler.add_joint_states(["a", "b"], 1, [1, 2], [], [5, 6])
    assert not assembler.add_joint_states(["gripper"], 1, [0], [], [])
    assert assembler.add_joint_states(["b", "gripper"], 3, [7, 0], [], [8, 0])
    recording = assembler.recording()
    assert recording.joint_names == ("b",)
    assert np.array_equal(recording.position, [[2], [7]])


def test_joints_of_several_messages_are_merged_at_the_stamps_of_the_first_of_them():
    assembler = RecordingAssembler("bag", joints=("left", "right", "wrist"))
    for k in range(100):
        t = 10 * k * MS
        assembler.add_joint_states(["left"], 10**18 + t, [t * 1e-9], [1], [k])
        assembler.add_joint_states(["finger"], 10**18 + t, [0], [], [])
        late = t + 3 * MS
        assembler.add_joint_states(["wrist", "right"], 10**18 + late, [5 * late * 1e-9, late * 1e-9], [5, 1], [0, k])
    recording = assembler.recording()
    assert recording.joint_names == ("left", "right", "wrist") and len(recording) == 99  # the first has none before it
    expected = np.column_stack([recording.time, recording.time, 5 * recording.time]) + 0.01 * np.array([1, 1, 5])
    np.testing.assert_allclose(recording.position, expected, atol=1e-9)
    np.testing.assert_allclose(recording.velocity, np.tile([1, 1, 5], (99, 1)))
    assert not recording.notices


def test_a_wanted_joint_that_no_message_holds_is_named():
    assembler = RecordingAssembler("bag", joints=("a", "other"))
    for k in range(10):
        assembler.add_joint_states(["a"], k, [0], [], [1])
    with pytest.raises(RecordingError, match=r"bag: no sample of joints other within"):
        assembler.recording()


@pytest.mark.parametrize(
    "message, text",
    [((["a", "b"], 1, [1], [1, 2], [1, 2]), "joint state 2: position has 1 values for 2 joints"),
        ((["a", "b"], 1, [], [1, 2], [1, 2]), "joint state 2: position is empty"),
        ((["a", "b"], 1, [1, 2], [1, 2], []), "joint state 2: effort is empty; record joint states with effort"),
        ((["a", "b"], 1, [1, 2], [1, 2, 3], [1, 2]), "joint state 2: velocity has 3 values"),
        ((["a", "b"], 1, [1, 2], [], [1, 2]), "joint state 2 lacks velocity, unlike earlier messages"),
        ((["a"], 1, [1], [1], [1]), "joint state 2: name holds a, .* a, b; list the joints to take in topics.joints"),
        ((["a", "b", "c"], 1, [1] * 3, [1] * 3, [1] * 3), "joint state 2: name holds a, b, c"),
        ((["a", "a"], 1, [1] * 2, [1] * 2, [1] * 2), "joint state 2: name lists a joint twice"),
        ((["a", "b"], 0, [1, 2], [1, 2], [1, 2]), "joint state 2: time goes back or repeats"),
        ((["a", "b"], -5, [1, 2], [1, 2], [1, 2]), "joint state 2: time goes back or repeats")],
)
def test_a_bad_message_is_named_and_not_kept(message, text):
    assembler = RecordingAssembler("the bag")
    assembler.add_joint_states(["a", "b"], 0, [1, 2], [3, 4], [5, 6])
    with pytest.raises(RecordingError, match="^the bag: " + text) as caught:
        assembler.add_joint_states(*message)
    assert isinstance(caught.value, StampOrderError) == ("time goes back" in text)
    assembler.add_joint_states(["a", "b"], 7, [1, 2], [3, 4], [5, 6])
    assert len(assembler.recording()) == 2


def test_a_first_message_without_names_is_refused():
    with pytest.raises(RecordingError, match="name is empty"):
        RecordingAssembler().add_joint_states([], 0, [], [], [])


def test_nothing_received_is_an_error():
    with pytest.raises(RecordingError, match="^empty: holds no joint states; record the joint_states topic"):
        RecordingAssembler("empty").recording()


def test_wrenches_of_another_rate_are_interpolated_to_the_joint_states():
    assembler = _fill(RecordingAssembler(channels=("wrench/tool",)), 40)
    stamps = 10**18 + MS * np.arange(-3, 210, 7)
    for stamp in stamps:
        t = (stamp - 10**18) * 1e-9
        assembler.add("wrench/tool", stamp, [t, 2 * t, 3 * t, 0, 0, -t])
    recording = assembler.recording()
    assert len(recording) == 40
    assert np.allclose(recording.wrenches["tool"][:, 1], 2 * recording.time, atol=1e-12)
    assert np.allclose(recording.wrenches["tool"][:, 5], -recording.time, atol=1e-12)


def test_joint_states_far_from_any_wrench_are_left_out_with_a_notice():
    assembler = _fill(RecordingAssembler(channels=("wrench/tool",), max_gap_s=0.01), 40)
    for k in range(0, 200):
        if not 80 < k < 130:
            assembler.add("wrench/tool", 10**18 + k * MS, [0, 0, k, 0, 0, 0])
    recording = assembler.recording()
    lost = np.setdiff1d(np.arange(40) * 5, np.round(1e3 * recording.time))
    assert lost.tolist() == [85, 90, 95, 100, 105, 110, 115, 120, 125]
    assert recording.notices == ("left out 9 samples without wrench/tool (9)",)


def test_topics_need_not_begin_and_end_together():
    assembler = _fill(RecordingAssembler(channels=("wrench/tool",), max_gap_s=0.01), 40)
    for stamp in range(8, 188, 4):  # joint states: 0, 5, ..., 195 ms
        assembler.add("wrench/tool", 10**18 + stamp * MS, [0] * 6)
    recording = assembler.recording()
    np.testing.assert_allclose(recording.time[[0, -1]], [0, 0.17])
    assert len(recording) == 35 and assembler.dropped == 1  # the last lies farther off than 10 ms
    assert assembler.missing == {"wrench/tool": 1}


def test_a_silent_wrench_topic_is_an_error_that_names_it():
    assembler = _fill(RecordingAssembler("bag", channels=("wrench/tool",)))
    with pytest.raises(RecordingError, match="bag: no sample of wrench/tool within 0.05 s of any joint state"):
        assembler.recording()


def test_wrench_stamps_that_go_back_are_refused():
    assembler = RecordingAssembler("bag")
    assembler.add("wrench/tool", 5, [0] * 6)
    with pytest.raises(StampOrderError, match="wrench/tool: time goes back"):
        assembler.add("wrench/tool", 5, [0] * 6)


@pytest.mark.parametrize("seed", range(5))
def test_taking_blocks_on_the_way_gives_bitwise_the_same_recording(seed):
    rng = np.random.default_rng(seed)
    whole = RecordingAssembler("r", channels=("wrench/f1", "wrench/f2"), max_gap_s=0.02)
    pieces = RecordingAssembler("r", channels=("wrench/f1", "wrench/f2"), max_gap_s=0.02)
    events = [(int(t), "joint") for t in np.cumsum(rng.integers(3, 8, 300) * MS)]
    for frame in ("f1", "f2"):
        stamps = np.cumsum(rng.integers(1, 15, 250) * MS)
        events += [(int(t), frame) for t in stamps[(stamps < 500 * MS) | (stamps > 560 * MS)]]
    events.sort(key=lambda event: event[0] + rng.integers(0, 30) * MS * (event[1] != "joint"))  # late wrenches
    last, blocks = {}, []
    for stamp, channel in events:
        if stamp <= last.get(channel, -1):
            continue
        last[channel] = stamp
        values = rng.normal(size=(3, 3))
        for assembler in (whole, pieces):
            if channel == "joint":
                assembler.add_joint_states(["a", "b", "c"], stamp, *values)
            else:
                assembler.add(f"wrench/{channel}", stamp, values[:2].ravel())
        if rng.random() < 0.1:
            blocks.append(pieces.take())
    blocks.append(pieces.take(final=True))
    one, other = whole.recording(), recording_from_blocks("r", [block for block in blocks if block is not None])
    assert np.array_equal(one.time, other.time) and len(one) > 100
    for channel in ("position", "velocity", "effort"):
        assert np.array_equal(getattr(one, channel), getattr(other, channel))
    for frame in ("f1", "f2"):
        assert np.array_equal(one.wrenches[frame], other.wrenches[frame])
    assert whole.dropped == pieces.dropped > 0


def test_memory_stays_bounded_when_a_wrench_topic_falls_silent():
    assembler = RecordingAssembler(channels=("wrench/tool",))
    assembler.add("wrench/tool", 0, [0] * 6)
    kept = 0
    for k in range(1, 4000):
        assembler.add_joint_states(["a"], k * MS, [0], [], [0])
        if k % 500 == 0:
            kept += len(assembler.take())
    assert kept == 0 and assembler.dropped > 2400


def test_joints_without_effort_interface_and_velocity_that_is_nan_are_noticed():
    assembler = RecordingAssembler("bag")
    for k in range(10):
        assembler.add_joint_states(["a", "finger"], k + 1, [k, 0], [np.nan, 0], [1, np.nan])
    recording = assembler.recording()
    assert recording.joint_names == ("a", "finger") and recording.velocity is None
    assert len(recording.notices) == 2 and "finger" in recording.notices[0]
    silent = RecordingAssembler("bag")
    for k in range(3):
        silent.add_joint_states(["a"], k, [0], [], [np.nan])
    with pytest.raises(RecordingError, match="bag: effort is NaN for every joint"):
        silent.recording()


def test_a_single_nan_is_kept_for_preparation_to_leave_out():
    assembler = _fill(RecordingAssembler("bag"))
    assembler.add_joint_states(["a", "b"], 2 * 10**18, [0, 0], [0, 0], [0, np.nan])
    effort = assembler.recording().effort
    assert np.argwhere(np.isnan(effort)).tolist() == [[20, 1]]


def test_interpolation_takes_equal_stamps_exactly_and_knows_its_ends():
    times = np.array([10, 20, 40], dtype=np.int64)
    values = np.array([[1.0], [2.0], [4.0]])
    stamps = np.array([5, 10, 15, 20, 30, 40, 41], dtype=np.int64)
    out, known = interpolate(stamps, times, values, max_gap_ns=9)
    assert known.tolist() == [False, True, True, True, False, True, False]
    assert out[known, 0].tolist() == [1.0, 1.5, 2.0, 4.0]
    assert not interpolate(stamps, np.zeros(0, dtype=np.int64), np.zeros((0, 1)), 9)[1].any()


def test_angles_that_jump_by_a_turn_are_not_interpolated_across_it():
    """Continuous joints of a second arm, reported within a turn, half a period later."""
    assembler = RecordingAssembler("bag", joints=("left", "right"))
    for k in range(100):
        late = 0.01 * k + 0.005
        angle = (3.0 + late + np.pi) % (2 * np.pi) - np.pi
        assembler.add_joint_states(["left"], 10**18 + 10 * k * MS, [0.0], [1.0], [0.0])
        assembler.add_joint_states(["right"], 10**18 + round(late * 1e9), [angle], [6.0 if k % 2 else 0.0], [0.0])
    recording = assembler.recording()
    exact = (3.0 + 0.01 + recording.time + np.pi) % (2 * np.pi) - np.pi
    off = np.abs(recording.position[:, 1] - exact)
    assert np.minimum(off, 2 * np.pi - off).max() < 0.006
    np.testing.assert_allclose(recording.velocity[:, 1], 3.0)  # only angles turn
