"""Files of motion capture as recordings of segments: C3D (by ezc3d), and OpenSim's TRC, STO and MOT.

Markers become columns ``<marker>.x``, ``.y`` and ``.z`` [m], of which :func:`segment_poses` makes poses. Wrenches act
on the person, in the axes of the motion capture and about its origin.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import scipy

from inertid_ros.config.robot import MarkerOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import FormatError, RecordingError, first_few, one_line, optional_module
from inertid_ros.core.formats import read_text
from inertid_ros.data.recording import WRENCH_PREFIX
from inertid_ros.robot.recorded_joints import POSE

from .foreign_files import read_in_worker

_TRC_WORD, _END = "PathFileType", "endheader"
_TRC_HEAD_LINES = 5
_METRES = {"m": 1.0, "cm": 1e-2, "mm": 1e-3}
_MIN_MARKERS = 3
_LINE_SHARE = 1e-3  # of the largest product of extents; below it the markers are on a line, which has no orientation
_KINEMATICS = "_BodyKinematics_pos_global"  # ends the name of OpenSim's file of poses
_MAX_FILLED_RATIO = 10  # cells of a table with lines of equal length over its cells; limits the memory
_CUTOFF_SHARE = 0.4  # of the rate of the motion, against aliasing of forces with a higher rate


def read_c3d(path: Path) -> dict[str, np.ndarray]:
    """Markers of a C3D file, and wrenches of its force plates, ``plate1``, ``plate2``, ...

    Raises RecordingError: the file is damaged or has a force plate of unknown type, or ezc3d is not installed.
    """
    optional_module("ezc3d", RecordingError(f"{path}: C3D needs the Python package ezc3d; pip install ezc3d"))
    return dict(read_in_worker(str(path), _c3d, str(path), size=path.stat().st_size))


def _c3d(path: str, progress: object) -> dict[str, np.ndarray]:
    """For a :class:`.Worker`: ezc3d is C++, which damaged files may end."""
    import ezc3d

    try:
        file = ezc3d.c3d(path, extract_forceplat_data=True)
        point = file["parameters"]["POINT"]
        labels, rate = point["LABELS"]["value"], float(point["RATE"]["value"][0])
        places = _METRES[point["UNITS"]["value"][0].strip()] * file["data"]["points"][:3]
        time = np.arange(places.shape[2]) / rate
        content = _columns(time, [label.strip() for label in labels], places.reshape(-1, len(time), order="F").T)
        for number, plate in enumerate(file["data"]["platform"], start=1):
            scale, force = _METRES[plate["unit_position"].strip()], plate["force"].T
            moment = scale * (plate["moment"].T + np.cross(plate["corners"].mean(axis=1), force))
            stamps = np.arange(len(force)) * len(time) / (rate * len(force))
            content[f"{WRENCH_PREFIX}plate{number}"] = _at(time, stamps, np.hstack([force, moment]))
    except Exception as error:  # the library raises errors of any type for damaged files
        raise RecordingError(f"{path}: cannot be read as C3D ({one_line(str(error))}); export it again") from None
    return content


def read_opensim(path: Path) -> dict[str, np.ndarray]:
    """Markers of a TRC file, or poses of an STO file of BodyKinematics; with the forces of MOT files beside it.

    Names of the latter begin with that of the motion: ``walk.trc`` and ``walk_grf.mot``. Raises RecordingError: a file
    is damaged, or holds neither markers nor poses.
    """
    head, rows = _table(path)
    if head[0].startswith(_TRC_WORD):
        unit = dict(zip(head[1].split("\t"), head[2].split("\t"), strict=False)).get("Units", "").strip()
        names = [name.strip() for name in head[3].split("\t")[2:] if name.strip()]
        if unit not in _METRES or rows.shape[1] < 2 + 3 * len(names):
            raise RecordingError(f"{path}: its unit is not m, cm or mm, or columns are missing; export it again")
        content = _columns(rows[:, 1], names, _METRES[unit] * rows[:, 2:])
    else:
        content = _poses(path, dict(zip(head[-1].split(), rows.T, strict=False)), "inDegrees=no" not in head)
    begin = path.stem.removesuffix(_KINEMATICS)
    for file in sorted(file for file in path.parent.glob("*.mot") if file.name.startswith(begin)):
        head, rows = _table(file)
        content |= _wrenches(file, dict(zip(head[-1].split(), rows.T, strict=False)), content["time"])
    return content


def _table(path: Path) -> tuple[list[str], Array]:
    """Lines before the numbers, of which the last names the columns unless in TRC; and the numbers ``(N, k)``."""
    try:
        lines = [line.rstrip() for line in read_text(path).splitlines()]
        separator = "\t" if lines[0].startswith(_TRC_WORD) else None
        first = _TRC_HEAD_LINES if separator else lines.index(_END) + 2
        cells = [line.split(separator) for line in lines[first:] if line]
        rows = [[float(cell.strip() or "nan") for cell in row] for row in cells]
        width = max(map(len, rows))
        if width * len(rows) > _MAX_FILLED_RATIO * sum(map(len, rows)):
            raise ValueError("its lines have different lengths")
    except (OSError, FormatError, ValueError, IndexError) as error:
        raise RecordingError(f"{path}: cannot be read as a file of OpenSim ({error}); export it again") from None
    return lines[:first], np.array([row + [np.nan] * (width - len(row)) for row in rows])


def _stack(path: Path, table: Mapping[str, Array], begin: str, axes: Sequence[str]) -> Array:
    if missing := [f"{begin}{axis}" for axis in axes if f"{begin}{axis}" not in table]:
        raise RecordingError(f"{path}: lacks the column '{missing[0]}'; export it again")
    return np.column_stack([table[f"{begin}{axis}"] for axis in axes])


def _poses(path: Path, table: Mapping[str, Array], degrees: bool) -> dict[str, np.ndarray]:
    bodies = [name.removesuffix("_Ox") for name in table if name.endswith("_Ox")]
    if not bodies:
        raise RecordingError(
            f"{path}: holds no poses of bodies (it has {first_few(list(table))}); give the file of BodyKinematics that"
            f" ends with {_KINEMATICS}.sto, or markers (.trc)")
    turned, columns = scipy.spatial.transform.Rotation.from_euler, []
    for body in bodies:
        angles = _stack(path, table, f"{body}_O", "xyz")
        columns += [_stack(path, table, f"{body}_", "XYZ"), turned("XYZ", angles, degrees).as_quat()]
    return _columns(_stack(path, table, "", ["time"])[:, 0], bodies, np.hstack(columns), POSE)


def _wrenches(path: Path, table: Mapping[str, Array], time: Array) -> dict[str, np.ndarray]:
    """Wrenches about the origin from forces, their points and free torques; none for a file without forces."""
    wrenches = {}
    for name in (column.removesuffix("_vx") for column in table if column.endswith("_vx")):
        of_torque = name.replace("force", "moment") + "_m"
        if f"{of_torque}x" not in table:
            of_torque = name.replace("force", "torque") + "_"
        force, point, free = (
            np.nan_to_num(_stack(path, table, begin, "xyz")) for begin in (f"{name}_v", f"{name}_p", of_torque))
        wrench = np.hstack([force, free + np.cross(point, force)])
        wrenches[f"{WRENCH_PREFIX}{name}"] = _at(time, _stack(path, table, "", ["time"])[:, 0], wrench)
    return wrenches


def _columns(time: Array, names: Sequence[str], position: Array, parts: Sequence[str] = "xyz") -> dict[str, np.ndarray]:
    columns = np.array([f"{name}.{part}" for name in names for part in parts])
    return {"time": time, "joint_names": columns, "position": position[:, : len(columns)]}


def _at(time: Array, stamps: Array, values: Array) -> Array:
    """Values ``(N, k)`` at the times of the motion, low-passed if their rate is higher; NaN outside of the stamps."""
    rate, wanted = ((len(times) - 1) / (times[-1] - times[0]) for times in (stamps, time))
    if rate > 2 * wanted:
        filters = scipy.signal.butter(4, _CUTOFF_SHARE * wanted, fs=rate, output="sos")
        values = scipy.signal.sosfiltfilt(filters, values, axis=0)
    return np.column_stack([np.interp(time, stamps, column, np.nan, np.nan) for column in values.T])


def segment_poses(path: Path, content: Mapping[str, np.ndarray], markers: Mapping[str, MarkerOptions]
        ) -> dict[str, np.ndarray]:
    """Replace markers by the pose of every segment, in least squares; NaN if fewer than three markers are visible.

    Raises RecordingError: the file lacks a marker.
    """
    starts = {name[:-2]: k for k, name in enumerate(map(str, content["joint_names"])) if name.endswith(".x")}
    if missing := [name for name in markers if name not in starts]:
        raise RecordingError(
            f"{path}: lacks {first_few(missing)} of robot.markers (it has {first_few(list(starts))}); correct"
            " robot.markers")
    poses, links = [], list(dict.fromkeys(marker.link for marker in markers.values()))
    for link in links:
        places = {name: marker.xyz for name, marker in markers.items() if marker.link == link}
        seen = content["position"][:, np.add.outer([starts[name] for name in places], range(3))]
        poses.append(_rigid_poses(np.array(list(places.values())), seen))
    return {**content, **_columns(content["time"], links, np.hstack(poses), POSE)}


def _rigid_poses(places: Array, seen: Array) -> Array:
    """Poses ``(N, 7)`` that map points ``(k, 3)`` of a segment to their positions ``(N, k, 3)``, NaN where unknown."""
    weights = np.asarray(np.isfinite(seen).all(axis=2), dtype=float)[..., None]
    count, seen = weights.sum(axis=1, keepdims=True), np.where(weights > 0, seen, 0.0)
    own, other = (np.sum(weights * points, axis=1, keepdims=True) / np.maximum(count, 1) for points in (places, seen))
    U, sizes, Vt = np.linalg.svd(np.swapaxes(weights * (places - own), 1, 2) @ (seen - other))
    U[:, :, 2] *= np.sign(np.linalg.det(U @ Vt))[:, None]
    turn = np.swapaxes(U @ Vt, 1, 2)
    origin = other[:, 0] - (turn @ np.swapaxes(own, 1, 2))[..., 0]
    pose = np.hstack([origin, scipy.spatial.transform.Rotation.from_matrix(turn).as_quat()])
    pose[(count[:, 0, 0] < _MIN_MARKERS) | (sizes[:, 1] <= _LINE_SHARE * sizes[:, 0])] = np.nan
    return pose
