"""Replay node: plays a bag's topics with their recorded stamps, and ``/clock``, without ``ros2 bag play``."""


from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.task import Future
from rosgraph_msgs.msg import Clock as ClockMessage
from std_srvs.srv import Trigger

from inertid_ros.config.nodes import ReplayOptions
from inertid_ros.core.errors import InertidError
from inertid_ros.data.files.bag_backends import BagMessage
from inertid_ros.data.files.bag_opening import open_playback
from inertid_ros.msg import RecorderStatus
from inertid_ros.ros.conversions import to_time
from inertid_ros.ros.diagnostics import OK, DiagnosticsPublisher, Status
from inertid_ros.ros.node_parameters import declare
from inertid_ros.ros.topics import LATCHED, STEADY, message_class

from .spin import run_node

_REPLAY_PERIOD_S = 0.005
_DISCOVERY_S = 0.5  # wait after the discovery of the last subscriber, and before the recorder is stopped
_MAX_MESSAGES_PER_TICK = 200  # a longer burst may overrun the queue of a reliable publisher


class Replay(Node):
    """Plays a bag and ends by itself after the last message."""

    def __init__(self) -> None:
        super().__init__("replay")
        self.options = declare(self, ReplayOptions)
        if not self.options.bag:
            raise InertidError("replay: no bag given; set the parameter bag")
        self.playback = open_playback(self.options.bag, self.options.topics)
        self.player = {
            topic: self.create_publisher(message_class(message_type), topic, QoSProfile(depth=1000))
            for topic, message_type in self.playback.types.items()}
        self.clock_publisher = self.create_publisher(ClockMessage, "/clock", 10) if self.options.clock_hz else None
        self.messages = self.playback.messages(self.playback.types)
        self.waiting: BagMessage | None = next(self.messages)
        self.recorder_name, self.created_ns = "", STEADY.now().nanoseconds
        self.ready_ns = self.started_ns = self.elapsed_ns = self.clock_ns = self.played = 0
        self.request: Future | None = None
        self.finished = self.done = False  # done ends the node
        self.start_client = self.create_client(Trigger, "recorder/start")
        self.stop_client = self.create_client(Trigger, "recorder/stop")
        if self.options.record:
            self.create_subscription(RecorderStatus, "recorder/status", self._recorder, LATCHED)
        self.create_timer(_REPLAY_PERIOD_S, self._tick, clock=STEADY)
        self.diagnostics = DiagnosticsPublisher(self, lambda: [self._status()])

    def _recorder(self, status: RecorderStatus) -> None:
        self.recorder_name = status.name

    def _tick(self) -> None:
        now = STEADY.now().nanoseconds
        if self.finished:
            return
        if not self.started_ns:
            if self._ready(now):
                self.started_ns = now
                self.get_logger().info(f"playing {self.options.bag}")
            return
        elapsed = self.elapsed_ns = round((now - self.started_ns) * self.options.rate)
        self._publish_clock(self.playback.start_ns + elapsed)
        for _ in range(_MAX_MESSAGES_PER_TICK):
            if self.waiting is None or self.waiting.time_ns > self.playback.start_ns + elapsed:
                break
            self.player[self.waiting.topic].publish(self.waiting.data)
            self.played += 1
            self.waiting = next(self.messages, None)
        if self.waiting is None:
            self._finish()

    def _ready(self, now: int) -> bool:
        """Start the requested recording once every topic has a subscriber; return True once the recording is open."""
        unsubscribed = [topic for topic, publisher in self.player.items() if publisher.get_subscription_count() == 0]
        if unsubscribed and self.options.wait_s:
            if now - self.created_ns > self.options.wait_s * 1e9:
                topic = unsubscribed[0]
                raise InertidError(f"replay: {topic} has no subscriber; start its receiver, or set wait_s to 0")
            return False
        self.ready_ns = self.ready_ns or now
        if now - self.ready_ns < _DISCOVERY_S * 1e9 and self.options.wait_s:
            return False
        if not self.options.record:
            return True
        if self.request is None:
            if not self.start_client.service_is_ready():
                if self.options.wait_s and now - self.ready_ns > self.options.wait_s * 1e9:
                    raise InertidError("replay: recorder/start is not there; start the recorder, or unset record")
                return False
            self.request = self.start_client.call_async(Trigger.Request())
        self._check_recording()
        return bool(self.recorder_name)  # not the answer: it comes only after samples have arrived

    def _publish_clock(self, now_ns: int) -> None:
        if self.clock_publisher and now_ns - self.clock_ns >= 1e9 * self.options.rate / self.options.clock_hz:
            self.clock_ns = now_ns
            self.clock_publisher.publish(ClockMessage(clock=to_time(now_ns)))

    def _finish(self) -> None:
        self.finished = True
        for publisher in self.player.values():
            publisher.wait_for_all_acked()
        self.get_logger().info(f"played {self.played} messages")
        self.done = not self.options.record
        if self.options.record:
            self.settling = self.create_timer(_DISCOVERY_S, self._stop_recorder, clock=STEADY)

    def _stop_recorder(self) -> None:
        self.settling.cancel()
        self._check_recording()
        self.get_logger().info(f"recorded as {self.recorder_name}")
        answer = self.stop_client.call_async(Trigger.Request())
        answer.add_done_callback(lambda _future: setattr(self, "done", True))

    def _check_recording(self) -> None:
        """Raise InertidError if the recorder has refused to start."""
        if self.request is not None and self.request.done() and not self.request.result().success:
            raise InertidError(f"replay: {self.request.result().message}")

    def _status(self) -> Status:
        state = "played" if self.finished else "playing" if self.started_ns else "waiting for subscribers"
        position_s = self.elapsed_ns * 1e-9
        values = {
            "State": state, "Bag": self.options.bag, "Messages played": self.played, "Position (s)": position_s}
        return Status("playback", OK, state, values)


def main() -> int:
    return run_node(Replay)
