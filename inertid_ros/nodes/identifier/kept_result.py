"""The last accepted result in a file, so that it survives a restart of the node, whatever ended it."""

import base64
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rclpy.serialization import deserialize_message, serialize_message

from inertid_ros.core.errors import FormatError, OutputError, RecordingError
from inertid_ros.core.formats.json_text import read_json
from inertid_ros.core.outputs import write_file
from inertid_ros.msg import IdentificationReport, InertialParameters
from inertid_ros.ros.definitions import message_definition

_LARGEST = 256 * 2**20  # bytes; covariances of a humanoid are some megabytes
_MESSAGES = {"parameters": InertialParameters, "report": IdentificationReport}


@dataclass(frozen=True)
class KeptResult:
    """What the identifier published with its last accepted result.

    Attributes
    ----------
    parameters : InertialParameters
    report : IdentificationReport
    description : str
        The calibrated URDF.
    """

    parameters: InertialParameters
    report: IdentificationReport
    description: str


def kept_file(directory: str, node_name: str) -> Path:
    """Return the file of a node, whose full name tells two robots apart."""
    return Path(directory).expanduser().absolute() / f"{node_name.strip('/').replace('/', '.')}.json"


def save(result: KeptResult, file: Path) -> None:
    """Write a result in place of the one that is there; a file is complete or is not there at all.

    Raises
    ------
    OutputError
        The directory cannot be written; the file of before stays.
    """
    content: dict[str, Any] = {"definitions": _definitions(), "description": result.description}
    for name in _MESSAGES:
        data = serialize_message(getattr(result, name))
        content[name] = {"sha256": hashlib.sha256(data).hexdigest(), "cdr": base64.b64encode(data).decode()}
    try:
        write_file(file, json.dumps(content, indent=1).encode(), force=True)
    except OutputError as error:
        raise OutputError(f"the result is not kept for a restart: {error}, in state_directory") from None


def load(file: Path) -> KeptResult | None:
    """Return the result in a file; None where there is none.

    Raises
    ------
    RecordingError
        The file cannot be read, is damaged, or is of a version with other messages.
    """
    try:
        if not file.exists():
            return None
        if file.stat().st_size > _LARGEST:
            raise FormatError("is too large")
        content = read_json(file.read_text(encoding="utf-8"))
        if content["definitions"] != _definitions():
            raise FormatError("is of another version of this package")
        messages = {name: _message(content[name], message_type) for name, message_type in _MESSAGES.items()}
        return KeptResult(description=str(content["description"]), **messages)
    except OSError as error:
        raise RecordingError(f"{file}: cannot be read ({error.strerror}); correct state_directory") from None
    except (FormatError, KeyError, TypeError, ValueError) as error:
        reason = str(error) if isinstance(error, FormatError) else "is damaged"
        raise RecordingError(f"{file}: {reason}, the last result is not published; identify anew") from None


def _message(content: dict[str, str], message_type: Any) -> Any:
    data = base64.b64decode(content["cdr"], validate=True)
    if hashlib.sha256(data).hexdigest() != content["sha256"]:
        raise FormatError("is damaged")
    return deserialize_message(data, message_type)


def _definitions() -> str:
    """Digest of the definitions of the messages, by which another version is recognised."""
    texts = [message_definition(f"inertid_ros/msg/{message_type.__name__}") for message_type in _MESSAGES.values()]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()
