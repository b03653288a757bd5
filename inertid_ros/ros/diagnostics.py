"""Diagnostics as ``rqt_robot_monitor`` and aggregators read them."""

from collections.abc import Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


def diagnostics(
    node: Node, what: str, level: bytes, message: str, values: Mapping[str, object]
) -> DiagnosticArray:
    """One status of a node, to be published on ``/diagnostics``."""
    status = DiagnosticStatus(level=level, name=f"{node.get_fully_qualified_name()}: {what}", message=message)
    status.hardware_id = node.get_namespace()
    status.values = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
    array = DiagnosticArray(status=[status])
    array.header.stamp = node.get_clock().now().to_msg()
    return array
