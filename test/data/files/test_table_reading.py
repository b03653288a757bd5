"""Tables of joint states, in the forms in which other tools write them."""

import numpy as np
import pytest

from inertid_ros.core.errors import RecordingError
from inertid_ros.data.files.loading import load_recording

TIME = np.round(0.01 * np.arange(5), 6)
POSITION = np.array([[0.1, -0.2], [0.11, -0.21], [0.13, -0.23], [0.16, -0.26], [0.2, -0.3]])
VELOCITY, EFFORT = 2 * POSITION, 10 * POSITION
EPOCH = 1_700_000_000


def table(header: str, *columns: np.ndarray, separator: str = ",") -> str:
    rows = np.column_stack(columns)
    return "\n".join([header, *(separator.join(f"{value!r}" for value in row.tolist()) for row in rows)]) + "\n"


PLOTJUGGLER = "__time," + ",".join(
    f"/joint_states/{joint}/{quantity}" for joint in ("shoulder", "elbow") for quantity in ("effort", "position")
) + ",/controller_state/elbow/position"  # fmt: skip
ROSTOPIC = "%time,field.header.seq,field.name0,field.name1,field.position0,field.position1,field.effort0,field.effort1"
GIVEN = {
    "words behind": table(
        "time,shoulder_position,elbow_position,shoulder_velocity,elbow_velocity,shoulder_effort,elbow_effort", TIME,
        POSITION, VELOCITY, EFFORT),
    "words before": table("t;pos shoulder;pos elbow;tau shoulder;tau elbow", TIME, POSITION, EFFORT, separator=";"),
    "units": table("Time [ms]\tshoulder angle [deg]\telbow angle [deg]\tshoulder torque [Nm]\telbow torque [mNm]",
        1e3 * TIME, np.rad2deg(POSITION), EFFORT * [1, 1e3], separator="\t"),
    "PlotJuggler": table(PLOTJUGGLER, EPOCH + TIME, EFFORT[:, 0], POSITION[:, 0], EFFORT[:, 1], POSITION[:, 1],
        9 + POSITION[:, 1]).replace("\n1700000000.0,", "\n1699999999.995,,,,,9.9\n1700000000.0,"),
    "rostopic echo -p": ROSTOPIC + "\n" + "".join(
        f"{EPOCH * 10**9 + round(1e9 * t)},{row},shoulder,elbow,{q[0]},{q[1]},{tau[0]},{tau[1]}\n"
        for row, (t, q, tau) in enumerate(zip(TIME, POSITION, EFFORT, strict=True))
    ),
    "ros2 topic echo --csv": "".join(
        f"{EPOCH},{round(1e9 * t)},base,shoulder,elbow,{q[0]},{q[1]},{v[0]},{v[1]},{tau[0]},{tau[1]}\n"
        for t, q, v, tau in zip(TIME, POSITION, VELOCITY, EFFORT, strict=True)
    ),
    "decimal commas": table("time;shoulder_pos;elbow_pos;shoulder_tau;elbow_tau", TIME, POSITION, EFFORT, separator=";")
    .replace(".", ","),
}  # fmt: skip


@pytest.mark.parametrize("form", GIVEN)
def test_forms(tmp_path, form):
    path = tmp_path / "run.csv"
    path.write_text(GIVEN[form])
    recording = load_recording(path)
    assert recording.joint_names == ("shoulder", "elbow")
    np.testing.assert_allclose(recording.time - recording.time[0], TIME, atol=1e-6)
    np.testing.assert_allclose(recording.position, POSITION)
    np.testing.assert_allclose(recording.effort, EFFORT)
    if recording.velocity is not None:
        np.testing.assert_allclose(recording.velocity, VELOCITY)


def test_numbered_joints(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text(table("t,q1,q2,qd1,qd2,tau1,tau2", TIME, POSITION, VELOCITY, EFFORT))
    recording = load_recording(path)
    assert recording.joint_names == ("joint1", "joint2")
    np.testing.assert_allclose(recording.velocity, VELOCITY)


@pytest.mark.parametrize(
    "text, message",
    [
        ("time,temperature\n0,1\n", "without positions of joints .its columns: time, temperature.; name the columns"),
        ("q1,tau1\n0,1\n", "without a column of time"),
        ("time,q1 [furlong],tau1\n0,1,2\n", "column 'q1' has the unknown unit furlong; use rad"),
        ("time [min],q1,tau1\n0,1,2\n", "column 'time' has the unknown unit min"),
        ("0,1,2\n0,1,2\n", "without names of columns"),
        ("1,2,base,elbow,0.1,0.2\n", "with position, velocity and effort"),
        ("time,/a/e/position,/b/e/position\n0,1,2\n", "joint states of a and b; export only the columns of one"),
    ],
)
def test_what_is_not_understood_is_told(tmp_path, text, message):
    path = tmp_path / "run.csv"
    path.write_text(text)
    with pytest.raises(RecordingError, match=message):
        load_recording(path)


def test_stamps_of_another_topic_are_not_taken(tmp_path):
    """PlotJuggler writes the columns of all topics into one table."""
    ours = PLOTJUGGLER.partition(",/controller_state")[0].replace("__time,", "")
    header = f"__time,/ft/header/stamp/nanosec,/ft/header/stamp/sec,/ft/wrench/force/x,{ours}"
    foreign = np.column_stack([np.zeros(len(TIME)), 7 + TIME, TIME])
    path = tmp_path / "table.csv"
    path.write_text(
        table(header, EPOCH + TIME, foreign, EFFORT[:, 0], POSITION[:, 0], EFFORT[:, 1], POSITION[:, 1]))
    recording = load_recording(path)
    np.testing.assert_allclose(recording.time - recording.time[0], TIME, atol=1e-6)
