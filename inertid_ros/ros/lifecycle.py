"""A repair of rclpy's lifecycle nodes."""

from typing import Any

from lifecycle_msgs.srv import ChangeState
from rclpy.lifecycle import LifecycleNode


def refuse_impossible_transitions(node: LifecycleNode) -> None:
    """Answer requests for transitions that the present state does not have with ``success=False``.

    rclpy raises in its service callback instead, which ends the node: anybody who asks an active node to activate
    would stop the robot.
    """
    service: Any = getattr(node, "_service_change_state", None)
    if service is None:
        return
    answer = service.callback

    def guarded(request: ChangeState.Request, response: ChangeState.Response) -> ChangeState.Response:
        try:
            result: ChangeState.Response = answer(request, response)
            return result
        except Exception as error:
            if "ransition" not in str(error):
                raise
            node.get_logger().error(f"transition {request.transition.id} is not possible in the present state")
            response.success = False
            return response

    service.callback = guarded
