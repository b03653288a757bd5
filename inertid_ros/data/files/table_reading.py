"""Tables with named columns: text, as spreadsheets, PlotJuggler and ``ros2 topic echo --csv`` write it, and arrays."""

import csv
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from inertid_ros.core.errors import RecordingError

_WORDS = {  # commands first: their names end with the words of measured quantities
    "command_position": ("command_position", "q_cmd"),
    "command_velocity": ("command_velocity", "qd_cmd", "dq_cmd"),
    "command_effort": ("command_effort", "tau_cmd"),
    "position": ("positions?", "pos", "angles?", "q"),
    "velocity": ("velocity", "velocities", "vel", "speeds?", "qdot", "qd", "dq"),
    "effort": ("efforts?", "torques?", "taus?", "trq"),
    "name": ("names?",)}
_QUANTITIES = {quantity: "|".join(words) for quantity, words in _WORDS.items()}
_TIMES = (  # the first match wins
    "header/stamp", "header.stamp", "time", "__time", "%time", "timestamp", "stamp", "times", "t")
_SECONDS = re.compile(r"(.*\b)(secs?|seconds)$", re.IGNORECASE)
_NANOSECONDS = ("nanosec", "nsecs", "nsec", "nanoseconds")
_BRACKET = re.compile(r"(?<!\s)\s*[\[(]([^\[\]()]*)[\])]$")  # in linear time: names may have any length
_UNITS = {
    **dict.fromkeys(("", "rad", "rad/s", "m", "m/s", "n m", "nm", "n*m", "n·m", "n", "s", "a", "%"), 1.0),
    **dict.fromkeys(("deg", "deg/s", "°", "°/s"), np.pi / 180),
    **dict.fromkeys(("mm", "mm/s", "ms", "mnm", "mn m"), 1e-3),
    "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_EPOCHS = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))  # limits for time since 1970: larger numbers have this unit [s]
_MAX_NAMED = 8
_REMEDY = ("name the columns time, and position, velocity and effort of each joint, as in"
    " 'time,joint1_position,joint1_effort'")
_ADD_TIME = """awk 'NR==1 {print "time," $0; next} {print (NR-2)/100 "," $0}'"""  # at 100 Hz


class _Column(NamedTuple):
    """A column of a joint: path before its name, joint (or its index), quantity, factor to SI."""

    group: str
    joint: str
    quantity: str
    factor: float


class _Table(NamedTuple):
    """Names of columns, the numbers ``(N, k)`` of some columns by their indices, and the first text of a column."""

    header: Sequence[str]
    numbers: Callable[[Sequence[int]], np.ndarray]
    text: Callable[[int], str]


def read_table(path: Path) -> dict[str, np.ndarray]:
    """Return ``joint_names``, ``time``, ``position`` and, if present, ``velocity``, ``effort`` and a sensor's channels.

    The first line names the columns: a word for position, velocity or effort before or after the name or number of the
    joint, with a unit in brackets if it is not SI. Without this line, rows must come from
    ``ros2 topic echo --csv /joint_states``. Rows without any position are left out, empty cells are NaN.

    The channels of a force-torque sensor are its wrench, ``wrench/sensor``, and its pose, ``base_pose``. A table with a
    wrench may have no joints.

    Raises RecordingError: columns are not understood, or have an unknown unit.
    """
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            first = file.readline()
            file.seek(0)
            delimiter = max(";\t,", key=first.count)
            rows = csv.reader(file, delimiter=delimiter)
            header = next(rows)
            if not _is_number(header[0]):
                return _headed(path, [cell.strip() for cell in header], rows, delimiter == ";")
            return _echoed(path, header, rows)
    except csv.Error as error:
        raise RecordingError(f"{path}: is not a table ({error}); export it again") from None


def columns_read(path: Path, columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return what :func:`read_table` returns, from arrays by the names of columns.

    An array ``(N, n)`` with the name of a quantity alone, as ``q`` or ``torques``, holds all joints.
    """
    single: dict[str, np.ndarray] = {}
    for name, values in columns.items():
        if values.ndim == 1:
            single[name] = values
        elif is_quantity(name):
            single |= {f"{name}[{joint}]": column for joint, column in enumerate(values.T, start=1)}
    lengths = {name: len(values) for name, values in single.items() if is_time(name) or _column(path, name)}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise RecordingError(f"{path}: its arrays have different lengths ({listed}); export the arrays of one run")
    single = {name: values for name, values in single.items() if not lengths or len(values) in lengths.values()}
    arrays = list(single.values())

    def numbers(taken: Sequence[int]) -> np.ndarray:
        try:
            return np.column_stack([arrays[index] for index in taken]).astype(float)
        except (TypeError, ValueError) as error:  # text, or lists of different lengths
            raise RecordingError(f"{path}: not all values of a joint are numbers ({error}); export it again") from None

    return _content(path, _Table(list(single), numbers,
        lambda index: str(arrays[index][0]) if len(arrays[index]) else ""))


def is_quantity(name: str) -> bool:
    """True if a name is a word for position, velocity or effort, without a joint."""
    return any(re.fullmatch(words, name, re.IGNORECASE) for words in _QUANTITIES.values())


def is_time(name: str) -> bool:
    """True if a name means a column of time."""
    return name.lower() in _TIMES


def _headed(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]], decimal_commas: bool
        ) -> dict[str, np.ndarray]:
    whole = [row for row in rows if len(row) >= len(header)]

    def number(cell: str) -> float:
        return _number(cell.replace(",", ".") if decimal_commas else cell)

    def numbers(taken: Sequence[int]) -> np.ndarray:
        return np.array([[number(row[index]) for index in taken] for row in whole]).reshape(-1, len(taken))

    return _content(path, _Table(header, numbers, lambda index: whole[0][index] if whole else ""))


def _content(path: Path, given: _Table) -> dict[str, np.ndarray]:
    header = given.header
    content = {channel: given.numbers(places) for channel, places in _sensor_columns(header).items()}
    if "base_pose" in content:  # of seven columns, the first of which may be absent
        pose = content["base_pose"]
        content["base_pose"] = np.pad(pose, ((0, 0), (7 - pose.shape[1], 0)), constant_values=np.nan)
    columns = {index: column for index, name in enumerate(header) if (column := _column(path, name))}
    group = _group(path, header, columns.values()) if columns or not content else ""
    columns = {index: column for index, column in columns.items() if column.group == group}
    _check_siblings(path, columns.values())
    time = _time_columns(path, header, group)
    names = {column.joint: given.text(index) for index, column in columns.items() if column.quantity == "name"}
    numbers = [index for index, column in columns.items() if column.quantity != "name"]
    table = given.numbers([*(index for index, _ in time), *numbers])
    stamps = sum(table[:, place] * factor for place, (_, factor) in enumerate(time))
    found = defaultdict[str, dict[str, np.ndarray]](dict)
    for place, index in enumerate(numbers, start=len(time)):
        column = columns[index]
        if column.joint in found[column.quantity]:
            raise RecordingError(f"{path}: holds {column.quantity} of joint {column.joint} twice; remove one column")
        found[column.quantity][column.joint] = table[:, place] * column.factor
    joints = list(found["position"])
    named = [names.get(joint) or (f"joint{joint}" if joint.isdigit() else joint) for joint in joints]
    content["joint_names"] = np.array(named, dtype=str)
    for quantity, channels in found.items():
        channels, values = _counted_alike(joints, channels), np.full((len(table), len(joints)), np.nan)
        for place, joint in enumerate(joints):
            values[:, place] = channels.get(joint, np.nan)
        content[quantity] = values
    present = np.isfinite(stamps) & (~np.isnan(content["position"]).all(axis=1) | (not joints))
    content = {key: value if key == "joint_names" else value[present] for key, value in content.items()}
    return content | {"time": _seconds(np.asarray(stamps)[present])}


def _sensor_columns(header: Sequence[str]) -> dict[str, list[int]]:
    """Columns of a force-torque sensor by channel: its wrench, and its pose if the table has its orientation."""
    names = [_BRACKET.sub("", name).strip().lower() for name in header]

    def places(words: str, axes: str = "xyz") -> list[int]:
        """One column for each axis, as ``fx``, ``force_x``, ``/wrench/force/x``; none if they are not unique."""
        patterns = [rf"(?:.*[/._ ])?{words}[/._ ]?{axis}" for axis in axes]
        columns = [[index for index, name in enumerate(names) if re.fullmatch(one, name)] for one in patterns]
        return [index for index, *_ in columns] if all(len(one) == 1 for one in columns) else []

    force, torque = places("f(?:orce)?"), places("(?:t|m|torque|moment)")
    turn, origin = places("(?:q|quat|quaternion|orientation)", "xyzw"), places("(?:p|pos|position|translation)")
    channels = {"wrench/sensor": force + torque} if force and torque else {}
    return channels | {"base_pose": (origin or places("")) + turn} if channels and turn else channels


def _counted_alike(joints: Sequence[str], channels: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Channels by the numbers of the joints: positions may be counted from 0 and efforts from 1."""
    if not all(name.isdecimal() and len(name) < 10 for name in (*joints, *channels)):
        return channels
    ours, theirs = sorted(map(int, joints)), sorted(map(int, channels))
    if len(ours) != len(theirs) or {count - own for own, count in zip(ours, theirs, strict=True)} not in ({1}, {-1}):
        return channels
    return {str(int(name) + ours[0] - theirs[0]): values for name, values in channels.items()}


def _check_siblings(path: Path, columns: Iterable[_Column]) -> None:
    """Refuse a table of positions alone if a file with a similar name in its folder seems to hold the efforts."""
    if any(column.quantity == "effort" for column in columns):
        return
    words = re.split(r"([_.\s-])", path.name)
    for place, word in enumerate(words):
        if re.fullmatch(_QUANTITIES["position"], word, re.IGNORECASE):
            before, after = map(re.escape, ("".join(words[:place]), "".join(words[place + 1 :])))
            other = re.compile(rf"{before}(?:{_QUANTITIES['effort']}){after}", re.IGNORECASE)
            for file in sorted(path.parent.iterdir()):
                if other.fullmatch(file.name):
                    raise RecordingError(
                        f"{path}: holds no efforts, which seem to be in {file.name}; join both, if their rows belong"
                        f" together: paste -d, {path} {file} | tr -d '\\r' > run.csv")


def _column(path: Path, name: str) -> _Column | None:
    """Column with this name; None if the name does not mean a joint's channel."""
    index, unit = "", ""
    if bracket := _BRACKET.search(name):
        name = name[: bracket.start()]
        index, unit = (bracket[1], "") if bracket[1].isdecimal() else ("", bracket[1].strip().lower())
    *parents, last = name.strip("/- ").split("/")
    for quantity, words in _QUANTITIES.items():
        if re.fullmatch(words, last, re.IGNORECASE):
            joint = index or (parents.pop() if parents else "1")
        elif parents and re.fullmatch(words, parents[-1], re.IGNORECASE):
            parents.pop()
            joint = last
        elif behind := re.fullmatch(rf"(?:field\.)?(.+?)[_.: -](?:{words})", last, re.IGNORECASE):
            return _Column("/".join(parents), behind[1], quantity, _factor(path, name, unit))
        elif before := re.fullmatch(rf"(?:field\.)?(?:{words})(?:[_.: -]?(\d+)|[_.: -](.+))", last, re.IGNORECASE):
            joint = before[1] or before[2]
        else:
            continue
        if joint.lower() in ("x", "y", "z", "w"):  # component of a wrench or pose
            return None
        return _Column("/".join(parents), joint, quantity, _factor(path, name, unit))
    return None


def _group(path: Path, header: Sequence[str], columns: Iterable[_Column]) -> str:
    """Group of columns, as of one topic, with most joints that have position and effort; in a tie, most positions."""
    joints = defaultdict[str, dict[str, set[str]]](lambda: defaultdict(set))
    for column in columns:
        joints[column.group][column.quantity].add(column.joint)
    sizes = {group: (len(found["position"] & found["effort"]), len(found["position"]))
        for group, found in joints.items() if found["position"]}
    if not sizes:
        shown = ", ".join(filter(None, header[:_MAX_NAMED]))
        raise RecordingError(f"{path}: is a table without positions of joints (its columns: {shown}); {_REMEDY}")
    largest = [group for group, size in sizes.items() if size == max(sizes.values())]
    if len(largest) > 1:
        raise RecordingError(
            f"{path}: holds joint states of {' and '.join(largest)}; export only the columns of one group")
    return largest[0]


def _time_columns(path: Path, header: Sequence[str], group: str) -> list[tuple[int, float]]:
    """Columns whose sum is the stamp [s], each with its factor to seconds."""
    own = [name.strip("/").removeprefix(f"{group}/").removeprefix("field.").lower() for name in header]
    bare = [_BRACKET.sub("", name) for name in own]
    present = set(bare)
    for index, name in enumerate(bare):
        if group and "/" in name and not name.startswith(("header/", "stamp/")):
            continue  # a column of another topic
        if seconds := _SECONDS.match(name):
            parts = [bare.index(seconds[1] + word) for word in _NANOSECONDS if seconds[1] + word in present]
            if parts:
                return [(index, 1.0), (parts[0], 1e-9)]
    for name in _TIMES:
        if name in bare:
            index = bare.index(name)
            unit = bracket[1].strip() if (bracket := _BRACKET.search(own[index])) else ""
            return [(index, _factor(path, name, unit))]
    shown = ", ".join(header[:_MAX_NAMED])
    raise RecordingError(
        f"{path}: is a table without a column of time (it has {shown}); {_REMEDY}; if the rows are evenly spaced, for"
        f" example at 100 Hz: {_ADD_TIME} {path} > timed.csv")


def _echoed(path: Path, first: Sequence[str], rows: Iterator[Sequence[str]]) -> dict[str, np.ndarray]:
    """Rows of seconds, nanoseconds, frame, names, then positions, velocities and efforts of these joints."""
    names = [cell for cell in first[3:] if not _is_number(cell)]
    quantities, rest = divmod(len(first) - 3 - len(names), max(len(names), 1))
    if not names or rest or quantities != 3 or list(first[3 : 3 + len(names)]) != names:
        raise RecordingError(
            f"{path}: is a table without names of columns, and not the output of ros2 topic echo --csv for joint states"
            f" with position, velocity and effort; {_REMEDY}")
    head, n = 3 + len(names), len(names)
    cells = [[row[0], row[1], *row[head:]] for row in (first, *rows) if list(row[3:head]) == names]
    table = np.array([[_number(cell) for cell in row] for row in cells if len(row) == 2 + 3 * n])
    blocks = np.split(table[:, 2:], 3, axis=1)
    return {"joint_names": np.array(names), "time": table[:, 0] + 1e-9 * table[:, 1],
        **dict(zip(("position", "velocity", "effort"), blocks, strict=True))}


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _number(cell: str) -> float:
    """Number in a cell; NaN for an empty cell and for text."""
    return float(cell) if _is_number(cell) else np.nan


def _factor(path: Path, name: str, unit: str) -> float:
    """Factor from a unit to SI; raises RecordingError if the unit is unknown."""
    if unit not in _UNITS:
        raise RecordingError(f"{path}: column '{name}' has the unknown unit {unit}; use rad, N m and s")
    return _UNITS[unit]


def _seconds(stamps: np.ndarray) -> np.ndarray:
    """Stamps in seconds; numbers that are too large for this century are in smaller units."""
    largest = np.abs(stamps).max(initial=0.0)
    return np.asarray(stamps * next((factor for limit, factor in _EPOCHS if largest > limit), 1.0))
