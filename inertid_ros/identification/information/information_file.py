"""Files of compressed information, for exchange between machines and for adding later recordings."""

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from inertid_ros.core.errors import FormatError, IdentificationError, ModelError
from inertid_ros.core.formats import read_arrays, read_json
from inertid_ros.robot.layout import Coupling, ParameterLayout, UserTerm
from inertid_ros.robot.rotors import Rotor

from .information import Channel, EarlierEquations, Information

INFORMATION_FORMAT = 1
_DAMAGE_ERRORS = (OSError, LookupError, ValueError, TypeError, AttributeError, OverflowError)


def information_bytes(information: Information) -> bytes:
    """Content of an ``.npz`` of information.

    The content is ``format``, ``layout`` (JSON), ``robot`` (fingerprint), ``names`` and ``counts`` (n,), and for every
    channel ``j`` ``columns/j`` (c,) and ``triangle/j`` (c + 1, c + 1); ``noise`` (n,) if known; ``earlier`` (k, p + 1)
    if the result continued an earlier result. The size depends on the robot, not on the recordings.
    """
    content: dict[str, Any] = {
        "format": INFORMATION_FORMAT, "layout": json.dumps(dataclasses.asdict(information.layout)),
        "robot": information.robot, "names": np.array(information.names), "counts": information.counts}
    for index, channel in enumerate(information.channels):
        content |= {f"columns/{index}": channel.columns, f"triangle/{index}": channel.r_factor}
    if information.noise is not None:
        content["noise"] = information.noise
    if information.earlier is not None:
        content["earlier"] = information.earlier.rows
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **content)
    return buffer.getvalue()


def read_information(path: str | Path) -> Information:
    """Read information, exact to the last bit, from a file with the content of :func:`information_bytes`."""
    return _read(Path(path), Path(path))


def _read(source: Path | io.BytesIO, path: Path) -> Information:
    try:
        content = read_arrays(source)
        if int(content["format"]) != INFORMATION_FORMAT:
            raise IdentificationError(
                f"{path}: has format {content['format']}, this version reads {INFORMATION_FORMAT}; update")
        return _information(path, content)
    except FileNotFoundError:
        raise IdentificationError(f"{path}: no such file; check the path") from None
    except FormatError as error:
        raise IdentificationError(
            f"{path}: is not an information file, or is damaged ({error}); write it again") from None
    except _DAMAGE_ERRORS as error:
        raise IdentificationError(
            f"{path}: is not an information file, or is damaged ({error.__class__.__name__}); write it again") from None
    except ModelError as error:
        raise IdentificationError(f"{path}: {error}") from None


def information_from_bytes(content: bytes, name: str) -> Information:
    """Read information from the content of a file, as returned by :func:`information_bytes`."""
    return _read(io.BytesIO(content), Path(name))


def _information(path: Path, content: dict[str, np.ndarray]) -> Information:
    layout = _layout(read_json(str(content["layout"])))
    channels = tuple(
        Channel(content[f"columns/{index}"], content[f"triangle/{index}"], int(count))
        for index, count in enumerate(content["counts"]))
    names = tuple(map(str, content.get("names", layout.joints)))
    if len(channels) != len(names):
        raise IdentificationError(f"{path}: {len(channels)} channels but {len(names)} names; write it again")
    for name, channel in zip(names, channels, strict=True):
        width = len(channel.columns) + 1
        inside = channel.columns.size and channel.columns.min() >= 0 and channel.columns.max() < layout.size
        if not inside or channel.r_factor.shape != (width, width) or not np.isfinite(channel.r_factor).all():
            raise IdentificationError(f"{path}: channel '{name}' is damaged; write it again")
    noise = content.get("noise")
    if noise is not None and (noise.shape != (len(names),) or not (np.isfinite(noise) & (noise > 0)).all()):
        raise IdentificationError(f"{path}: noise is damaged; write it again")
    rows, earlier = content.get("earlier"), None
    if rows is not None:
        if rows.ndim != 2 or rows.shape[1] != layout.size + 1 or not np.isfinite(rows).all():
            raise IdentificationError(f"{path}: the equations of earlier recordings are damaged; write it again")
        earlier = EarlierEquations(rows[:, :-1], rows[:, -1])
    return Information(layout, channels, str(content["robot"]), names, noise, earlier)


def _layout(fields: dict[str, list]) -> ParameterLayout:
    """Layout from the lists of JSON."""
    nested: dict[str, Any] = {"couplings": Coupling, "rotors": Rotor, "terms": UserTerm}
    compensation = bool(fields.pop("compensation", False))
    return ParameterLayout(
        compensation=compensation,
        **{
            name: tuple(nested[name](**_tuples(value)) if name in nested else value for value in values)
            for name, values in fields.items()})


def _tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}
