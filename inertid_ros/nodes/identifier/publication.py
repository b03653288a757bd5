"""Publication: what the identifier hands to controllers and RViz, latched, also over a restart."""

from rclpy.node import Node
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import InertidError
from inertid_ros.msg import IdentificationReport, InertialParameters
from inertid_ros.robot.model import RobotModel
from inertid_ros.ros.conversions import NANOSECONDS, to_nanoseconds
from inertid_ros.ros.markers import CALIBRATED, GIVEN, inertia_markers
from inertid_ros.ros.parameter_messages import from_inertial_parameters
from inertid_ros.ros.qos import LATCHED

from .kept_result import KeptResult, kept_file, load, save


class Publication:
    """Publishers of results, and the file that keeps the last accepted one.

    Parameters
    ----------
    node : Node
    state_directory : str
        Of the file; empty keeps nothing.

    Attributes
    ----------
    accepted : InertialParameters or None
        What controllers were given last.
    problem : str
        Why the last accepted result is not kept, or was not restored, in a line; empty where nothing is wrong.
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
        self._kept = self._load()

    @property
    def age(self) -> float:
        """Of the accepted result [s]; NaN where there is none."""
        if self.accepted is None:
            return float("nan")
        stamp = to_nanoseconds(self.accepted.header.stamp)
        return float(self._node.get_clock().now().nanoseconds - stamp) / NANOSECONDS

    def describe(self, model: RobotModel) -> None:
        """Show a robot as it is given; where the kept result is of this robot, publish it as it was, with its stamp."""
        if self.accepted is not None:
            return
        if self._kept is None or self._kept.parameters.model_hash != model.hash:
            if self._kept is not None:
                self.problem = f"{self._file}: is of another robot than described, and is not published"
                self._node.get_logger().warning(self.problem)
            stamp = self._node.get_clock().now().to_msg()
            self._markers.publish(inertia_markers(model.link_names, model.body_prior, stamp, "given", GIVEN))
            return
        self.problem = ""
        self.report(self._kept.report)
        self._publish(self._kept, model, from_inertial_parameters(self._kept.parameters).bodies)
        self._node.get_logger().info(f"published the result of before the restart, {self.age / 3600:.1f} h old")

    def report(self, report: IdentificationReport) -> None:
        """Publish how an identification went, whether or not its result is accepted."""
        self._report.publish(report)

    def accept(self, result: KeptResult, model: RobotModel, bodies: Array) -> None:
        """Publish a result and keep it; one that cannot be kept is published all the same.

        Parameters
        ----------
        result : KeptResult
        model : RobotModel
        bodies : ndarray, shape (nb, 10)
            Identified parameters of the bodies.
        """
        self._publish(result, model, bodies)
        if self._file is None:
            return
        try:
            save(result, self._file)
            self.problem = ""
        except InertidError as error:
            self._note(error)

    def _load(self) -> KeptResult | None:
        try:
            return load(self._file) if self._file is not None else None
        except InertidError as error:
            self._note(error)
            return None

    def _note(self, error: InertidError) -> None:
        self.problem = str(error)
        self._node.get_logger().error(self.problem)

    def _publish(self, result: KeptResult, model: RobotModel, bodies: Array) -> None:
        self.accepted = result.parameters
        self._parameters.publish(result.parameters)
        self._description.publish(String(data=result.description))
        stamp = self._node.get_clock().now().to_msg()
        markers = inertia_markers(model.link_names, model.body_prior, stamp, "given", GIVEN)
        markers.markers += inertia_markers(model.link_names, bodies, stamp, "calibrated", CALIBRATED).markers
        self._markers.publish(markers)
