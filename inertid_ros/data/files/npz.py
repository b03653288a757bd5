"""Recordings in NumPy's ``.npz``, in and out."""

import io
from pathlib import Path
from typing import Any

import numpy as np

from inertid_ros.core.errors import FormatError, RecordingError
from inertid_ros.core.formats.npz_archive import read_arrays
from inertid_ros.core.outputs import write_file
from inertid_ros.data.recording import Recording
from inertid_ros.data.stamp_order import StampRepairs, in_order

WRENCH_PREFIX = "wrench/"
_REQUIRED = ("joint_names", "time", "position", "effort")
_MOST_JOINTS = 10_000
_OF_BASE = ("base_pose", "base_twist", "imu")
_OPTIONAL = ("velocity", "acceleration", "base_pose", "base_twist", "base_acceleration", "imu")


def read_npz(path: str | Path) -> Recording:
    """Recording of an ``.npz`` file; keys that are not in the format are ignored.

    Raises
    ------
    RecordingError
        No such file, not an npz archive, a key is missing or holds something else, or the content makes no
        :class:`~inertid_ros.data.recording.Recording`.
    """
    path = Path(path)
    try:
        content = read_arrays(path, _known)
    except FileNotFoundError:
        raise RecordingError(f"{path}: no such file; check the path") from None
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read as npz ({error.__class__.__name__}); export it again") from None
    except FormatError as error:
        raise RecordingError(f"{path}: {error}; export {', '.join(_REQUIRED)} with numpy.savez") from None
    for key, value in content.items():
        if key != "joint_names" and value.dtype.kind not in "fiu":
            raise RecordingError(f"{path}: {key} holds {value.dtype}, not numbers; export it as float64")
    # Equations of the base and of momentum need no effort.
    measured = any(key.startswith((WRENCH_PREFIX, *_OF_BASE)) for key in content)
    missing = [key for key in _REQUIRED if key not in content and not (key == "effort" and measured)]
    if missing:
        raise RecordingError(
            f"{path}: lacks {', '.join(missing)} (it has {', '.join(sorted(content)) or 'no known key'});"
            f" a recording holds {', '.join(_REQUIRED)}"
        )
    names = content.pop("joint_names")
    if names.ndim != 1 or names.dtype.kind not in "US":
        raise RecordingError(f"{path}: joint_names is not a list of names; save it as an array of strings")
    if len(names) > _MOST_JOINTS:
        raise RecordingError(f"{path}: joint_names holds {len(names)} names; save those of one robot")
    frames = [key for key in content if key.startswith(WRENCH_PREFIX)]
    wrenches = {key.removeprefix(WRENCH_PREFIX): content.pop(key) for key in frames}
    text = [name.decode(errors="backslashreplace") if isinstance(name, bytes) else str(name) for name in names.tolist()]
    channels: dict[str, Any] = content
    channels.setdefault("effort", np.full(channels["position"].shape, np.nan))
    channels, wrenches, repairs = _in_order(channels, wrenches)
    return Recording(joint_names=tuple(text), **channels, wrenches=wrenches, name=str(path), repairs=repairs)


def _in_order(
    channels: dict[str, Any], wrenches: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], StampRepairs]:
    """The same in the order of their stamps, without repeats and a few that are of another clock."""
    time = channels["time"]
    if time.ndim != 1 or len(time) < 2 or not np.isfinite(time).all():
        return channels, wrenches, StampRepairs()
    chosen, repairs = in_order(time.astype(float))
    if not repairs.count or repairs.too_many_elsewhere:
        return channels, wrenches, StampRepairs()

    def kept(group: dict[str, Any]) -> dict[str, Any]:
        return {key: value[chosen] if value.shape[:1] == time.shape else value for key, value in group.items()}

    return kept(channels), kept(wrenches), repairs


def write_npz(recording: Recording, path: str | Path, overwrite: bool = True) -> Path:
    """Write a recording to ``path``, atomically; with ``overwrite`` a regular file that exists is replaced.

    Raises
    ------
    OutputError
        It cannot be written.
    """
    path = Path(path)
    content: dict[str, Any] = {"joint_names": np.array(recording.joint_names), "time": recording.time}
    for key in ("position", "effort", *_OPTIONAL):
        value = getattr(recording, key)
        if value is not None:
            content[key] = value
    content |= {f"{WRENCH_PREFIX}{frame}": values for frame, values in recording.wrenches.items()}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **content)
    write_file(path, buffer.getvalue(), overwrite or None)
    return path


def _known(key: str) -> bool:
    return key in (*_REQUIRED, *_OPTIONAL) or key.startswith(WRENCH_PREFIX)
