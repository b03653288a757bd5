"""Publication of the identifier's results for controllers and RViz: latched, and kept in a file across restarts."""

import base64
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geometry_msgs.msg import Point, Pose, Vector3
from rclpy.node import Node
from rclpy.serialization import deserialize_message, serialize_message
from std_msgs.msg import ColorRGBA, String
from visualization_msgs.msg import Marker, MarkerArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import FormatError, InertidError, OutputError, RecordingError
from inertid_ros.core.formats import read_json, read_text
from inertid_ros.core.inertial_parameters import is_consistent, uniform_ellipsoid
from inertid_ros.core.outputs import write_file
from inertid_ros.msg import IdentificationReport, InertialParameters
from inertid_ros.robot.model import RobotModel
from inertid_ros.ros.conversions import NANOSECONDS, by_axis, matrix_to_quaternion, to_nanoseconds
from inertid_ros.ros.received_parameters import from_inertial_parameters
from inertid_ros.ros.topics import LATCHED, message_definition

_GIVEN_COLOR = ColorRGBA(r=0.6, g=0.6, b=0.6, a=0.35)
_CALIBRATED_COLOR = ColorRGBA(r=0.1, g=0.7, b=0.3, a=0.6)
_MAX_FILE_BYTES = 256 * 2**20  # covariances of a humanoid take some megabytes
_MESSAGES = {"parameters": InertialParameters, "report": IdentificationReport}


@dataclass(frozen=True)
class KeptResult:
    """Messages of the last accepted result, and the calibrated URDF."""

    parameters: InertialParameters
    report: IdentificationReport
    description: str


def kept_file(directory: str, node_name: str) -> Path:
    """Return the file that keeps a node's result; the full name of the node, unique per robot, is the file name."""
    return Path(os.path.expanduser(directory)).absolute() / f"{node_name.strip('/').replace('/', '.')}.json"


def save(result: KeptResult, file: Path) -> None:
    """Replace the result in a file; raise OutputError, and keep the file, if the directory cannot be written."""
    content: dict[str, Any] = {"definitions": _definitions(), "description": result.description}
    for name in _MESSAGES:
        data = serialize_message(getattr(result, name))
        content[name] = {"sha256": hashlib.sha256(data).hexdigest(), "cdr": base64.b64encode(data).decode()}
    try:
        write_file(file, json.dumps(content, indent=1).encode(), force=True)
    except OutputError as error:
        raise OutputError(f"the result is not saved for a restart: {error}, in state_directory") from None


def load(file: Path) -> KeptResult | None:
    """Return the result in a file; None if there is no file.

    Raises RecordingError if the file cannot be read, is damaged, or was written by a version with other messages.
    """
    try:
        if not file.exists():
            return None
        content = read_json(read_text(file, _MAX_FILE_BYTES))
        if content["definitions"] != _definitions():
            raise FormatError("was written by another version of this package")
        messages = {name: _message(content[name], message_type) for name, message_type in _MESSAGES.items()}
        return KeptResult(description=str(content["description"]), **messages)
    except OSError as error:
        raise RecordingError(f"{file}: cannot be read ({error.strerror}); correct state_directory") from None
    except (FormatError, KeyError, TypeError, ValueError) as error:
        reason = str(error) if isinstance(error, FormatError) else "is damaged"
        remedy = "the last result is not published; run the identification again"
        raise RecordingError(f"{file}: {reason}, {remedy}") from None


def _message(content: dict[str, str], message_type: Any) -> Any:
    data = base64.b64decode(content["cdr"], validate=True)
    if hashlib.sha256(data).hexdigest() != content["sha256"]:
        raise FormatError("is damaged")
    return deserialize_message(data, message_type)


def _definitions() -> str:
    texts = [message_definition(f"inertid_ros/msg/{message_type.__name__}") for message_type in _MESSAGES.values()]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


class Publication:
    """Publishers of results; a file keeps the last accepted result unless ``state_directory`` is empty.

    Attributes
    ----------
    accepted : the last parameters that were published for controllers.
    problem : reason why the last accepted result is not saved, or was not restored, in one line; else empty.
    """

    def __init__(self, node: Node, state_directory: str) -> None:
        self.accepted: InertialParameters | None = None
        self.problem = ""
        self._node = node
        self._parameters = node.create_publisher(InertialParameters, "~/parameters", LATCHED)
        self._report = node.create_publisher(IdentificationReport, "~/report", LATCHED)
        self._description = node.create_publisher(String, "~/robot_description", LATCHED)
        self._markers = node.create_publisher(MarkerArray, "~/markers", LATCHED)
        self._file = kept_file(state_directory, node.get_fully_qualified_name()) if state_directory else None
        self._kept: KeptResult | None = None
        try:
            self._kept = load(self._file) if self._file is not None else None
        except InertidError as error:
            self._note(error)

    @property
    def age(self) -> float:
        """Age of the accepted result [s]; NaN without a result."""
        if self.accepted is None:
            return float("nan")
        stamp = to_nanoseconds(self.accepted.header.stamp)
        return float(self._node.get_clock().now().nanoseconds - stamp) / NANOSECONDS

    def describe(self, model: RobotModel) -> None:
        """Publish the saved result of ``model`` with its old stamp; if there is none, markers of the given inertia."""
        if self.accepted is not None:
            return
        if self._kept is None or self._kept.parameters.model_hash != model.hash:
            if self._kept is not None:
                self.problem = f"{self._file}: does not belong to the described robot; it is not published"
                self._node.get_logger().warning(self.problem)
            self._markers.publish(self._inertia_markers(model, model.body_prior, "given", _GIVEN_COLOR))
            return
        self.problem = ""
        self.report(self._kept.report)
        self._publish(self._kept, model, from_inertial_parameters(self._kept.parameters).bodies)
        self._node.get_logger().info(f"published the result from before the restart, {self.age / 3600:.1f} h old")

    def report(self, report: IdentificationReport) -> None:
        """Publish the report of an identification, accepted or not."""
        self._report.publish(report)

    def accept(self, result: KeptResult, model: RobotModel, bodies: Array) -> None:
        """Publish a result with its bodies ``(nb, 10)``, then save it; an error in saving is logged."""
        self._publish(result, model, bodies)
        if self._file is None:
            return
        try:
            save(result, self._file)
            self.problem = ""
        except InertidError as error:
            self._note(error)

    def _note(self, error: InertidError) -> None:
        self.problem = str(error)
        self._node.get_logger().error(self.problem)

    def _publish(self, result: KeptResult, model: RobotModel, bodies: Array) -> None:
        self.accepted = result.parameters
        self._parameters.publish(result.parameters)
        self._description.publish(String(data=result.description))
        markers = self._inertia_markers(model, model.body_prior, "given", _GIVEN_COLOR)
        markers.markers += self._inertia_markers(model, bodies, "calibrated", _CALIBRATED_COLOR).markers
        self._markers.publish(markers)

    def _inertia_markers(self, model: RobotModel, bodies: Array, namespace: str, color: ColorRGBA) -> MarkerArray:
        """Return uniform ellipsoids with the mass, centre of mass and second moments of the bodies ``(nb, 10)``.

        Physically inconsistent bodies are left out.
        """
        markers, stamp = [], self._node.get_clock().now().to_msg()
        for index, (name, pi) in enumerate(zip(model.link_names, bodies, strict=True)):
            if not is_consistent(pi):
                continue
            centre, axes, radii = uniform_ellipsoid(pi)
            marker = Marker(
                ns=namespace, id=index, type=Marker.SPHERE, action=Marker.ADD, color=color, frame_locked=True)
            marker.header.frame_id, marker.header.stamp = name, stamp
            marker.pose = Pose(position=Point(**by_axis(centre)), orientation=matrix_to_quaternion(axes))
            marker.scale = Vector3(**by_axis(2 * radii))
            markers.append(marker)
        return MarkerArray(markers=markers)
