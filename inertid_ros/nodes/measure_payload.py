"""The payload flow: arm, move along a short motion, identify the payload during the motion, disarm.

The flow is a client of the excitation node and the online node, and renews the lease of the motion: when this process
ends, the robot stops. Exit status: 0 done; 2 something is missing or failed; 130 interrupted.
"""

from typing import Any

from rclpy.task import Future

from inertid_ros.action import Excite, IdentifyPayload
from inertid_ros.config.nodes import MeasurePayloadOptions
from inertid_ros.msg import ExcitationStatus

from .flow import DONE, ExcitationMover, Mover, run_flow
from .flow_client import FlowClient, FlowError

_PAYLOAD_ACTION = "online/identify_payload"
_SOLVE_TIMEOUT_S = 90.0  # from the end of the motion to the answer


class PayloadFlow:
    """The steps of the payload flow, in order. Every step raises FlowError with one line that names the remedy."""

    def __init__(self, client: FlowClient, options: MeasurePayloadOptions) -> None:
        self.client, self.options = client, options
        self.mover: Mover = ExcitationMover(client, options.wait_s)
        self.excitation = client.serving_node("excitation")
        client.serving_node("online")
        self.payload = client.action(IdentifyPayload, _PAYLOAD_ACTION)
        self.asked: Future | None = None
        self.ended: Future | None = None

    def run(self) -> int:
        client, options = self.client, self.options
        client.show("waiting for excitation and online")
        self.mover.wait(options.wait_s)
        client.wait_for_action(IdentifyPayload, _PAYLOAD_ACTION, options.wait_s)
        self.mover.arm()
        goal = Excite.Goal(duration=options.duration_s, speed_scale=options.speed_scale)
        self.mover.move("payload", goal, self._watch)
        self.mover.disarm()
        return self._conclude()

    def _watch(self) -> None:
        """Send the payload goal once the robot moves; raise FlowError if the online node refuses it or fails."""
        status = self.excitation.last
        if self.asked is None and status is not None and status.state == ExcitationStatus.MOVING:
            options = self.options
            seconds = options.duration_s / options.speed_scale
            goal = IdentifyPayload.Goal(frame=options.frame, duration=seconds, reference=list(options.reference))
            self.asked = self.payload.send_goal_async(goal)
        if self.ended is None and self.asked is not None and self.asked.done():
            if not self.asked.result().accepted:
                raise FlowError("the online node identifies another payload; wait until it has finished")
            self.ended = self.asked.result().get_result_async()
        answer = self._answer()
        if answer is not None and not answer.success:
            raise FlowError(answer.message)

    def _answer(self) -> Any:
        return self.ended.result().result if self.ended is not None and self.ended.done() else None

    def _conclude(self) -> int:
        def has_arrived() -> bool:
            self._watch()
            return self._answer() is not None

        self.client.until(has_arrived, f"{_PAYLOAD_ACTION} does not answer; see the output of online", _SOLVE_TIMEOUT_S)
        answer = self._answer()
        com = answer.payload.inertia.com
        self.client.show(f"payload: {answer.message}; centre of mass {com.x:.4f}, {com.y:.4f}, {com.z:.4f} m")
        self.client.show(f"URScript: {answer.set_target_payload}")
        self.client.show(f"libfranka: {answer.set_load}")
        for notice in answer.notices:
            self.client.show_warning(notice)
        return DONE

    def leave(self) -> None:
        if self.asked is not None and self.asked.done() and self.asked.result().accepted and self._answer() is None:
            self.asked.result().cancel_goal_async()
        self.client.attempt_all([self.mover.disarm])


def main() -> int:
    return run_flow("measure_payload", MeasurePayloadOptions, PayloadFlow)
