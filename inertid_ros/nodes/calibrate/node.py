"""The calibration flow: excite, record, once more for held-out data, identify, validate, publish.

A client of the other nodes. It keeps the lease of the motion: when this process ends, the robot stops. Ctrl-C cancels
and leaves the robot at rest. Exit status 0 done, 2 something is missing or failed, 3 the result did not pass its
validation, 130 interrupted.
"""

import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from action_msgs.msg import GoalStatus
from lifecycle_msgs.msg import State, Transition
from std_msgs.msg import Bool

from inertid_ros.action import Excite, Identify
from inertid_ros.cli.tables import print_report
from inertid_ros.core.errors import InertidError
from inertid_ros.msg import ExcitationStatus, IdentificationReport, IdentifierStatus, InertialParameters, RecorderStatus
from inertid_ros.ros.parameters import declare
from inertid_ros.ros.qos import LATCHED

from .client import FlowClient, FlowError, Interrupted
from .parameters import CalibrateOptions

_DONE, _FAILED, _REJECTED, _INTERRUPTED = 0, 2, 3, 130
_MOTION_S = 1800.0  # longest time for planning and one motion
_IDENTIFY_S = 1800.0
_SILENT_S = 5.0  # nodes tell their status at least once a second
_SEEDS_APART = 1000  # from round to round, so that none has the seed of the held-out motion


class Heard:
    """The last status of a node, and how long ago it came."""

    def __init__(self, client: FlowClient, kind: Any, topic: str) -> None:
        self.last: Any = None
        self._at = -math.inf
        client.node.create_subscription(kind, topic, self._take, LATCHED)

    def gone(self, node: str) -> str:
        """Why the node must be taken for dead; empty while it talks."""
        silent = time.monotonic() - self._at
        return f"{node} has not been heard for {silent:.0f} s; see its output" if silent > _SILENT_S else ""

    def _take(self, status: Any) -> None:
        self.last, self._at = status, time.monotonic()


class Flow:
    """The steps, in order. Every step raises FlowError with one line that says what to do.

    The robot is moved by the excitation node, or by itself: one that balances has a controller of its own.
    """

    def __init__(self, client: FlowClient, options: CalibrateOptions) -> None:
        self.client, self.options = client, options
        self.identifier = client.latest(IdentifierStatus, "identifier/status", LATCHED)
        self.report = client.latest(IdentificationReport, "identifier/report", LATCHED)
        self.excitation = Heard(client, ExcitationStatus, "excitation/status")
        self.recorder = Heard(client, RecorderStatus, "recorder/status")
        self.by_itself = options.moved_by == "robot"
        self.moving = client.latest(Bool, options.moving_topic, LATCHED)
        self.armed = self.recording = False

    def run(self) -> int:
        """All of it; the exit status."""
        try:
            self._wait_for_nodes()
            self._arm()
            options = self.options
            train = [self._record("training", options.motion, options.duration_s, options.seed)]
            held_out = self._record(
                "held-out", options.validation_motion, options.validation_duration_s, options.validation_seed
            )
            if options.rounds == 1:
                self._disarm()
            result = self._identify(train, held_out)
            while not result.stop_reason and len(train) < options.rounds:
                train.append(self._next_round(len(train) + 1, result))
                result = self._identify(train, held_out, result.result_directory)
            if self.armed:
                self._disarm()
            return self._conclude(result)
        finally:
            self._leave()

    def _next_round(self, number: int, result: Identify.Result) -> str:
        """A motion that asks for what the data so far left open; the recording's name."""
        if not result.result_directory:
            raise FlowError("the identifier writes no results, which the next round needs; set output_directory")
        options = self.options
        purpose, seed = f"round {number}", options.seed + _SEEDS_APART * (number - 1)
        return self._record(purpose, options.motion, options.duration_s, seed, result.result_directory)

    def _wait_for_nodes(self) -> None:
        client, wait = self.client, self.options.wait_s
        client.say(f"waiting for {'the robot' if self.by_itself else 'excitation'}, recorder and identifier")
        mover = self.options.move_service if self.by_itself else "excitation/get_state"
        for service in (mover, "recorder/start", "recorder/stop"):
            client.wait_for_service(service, wait)
        client.wait_for_action(Identify, "identifier/identify", wait)
        if not self.by_itself:
            client.wait_for_action(Excite, "excitation/excite", wait)

        def ready() -> bool:
            return bool(self.identifier) and self.identifier[-1].state != IdentifierStatus.WAITING

        client.until(ready, "the identifier has no robot description; publish robot_description or set its urdf", wait)

    def _arm(self) -> None:
        """Active and not latched, whatever it was before."""
        client = self.client
        if self.by_itself:
            return
        state = client.lifecycle_state("excitation")
        if state == State.PRIMARY_STATE_ACTIVE:
            client.change_state("excitation", Transition.TRANSITION_DEACTIVATE)
            state = State.PRIMARY_STATE_INACTIVE
        if state == State.PRIMARY_STATE_UNCONFIGURED:
            client.patiently(
                lambda: client.change_state("excitation", Transition.TRANSITION_CONFIGURE), self.options.wait_s
            )
        client.change_state("excitation", Transition.TRANSITION_ACTIVATE)
        self.armed = True
        client.say("excitation is armed")

    def _record(self, purpose: str, motion: str, duration: float, seed: int, prior: str = "") -> str:
        """Move along one motion with the recorder running; the recording's name."""
        client = self.client
        name = client.patiently(self._start_recording, self.options.wait_s)
        if self.by_itself:
            self._move_by_itself(purpose, name)
        else:
            scale = self.options.speed_scale
            goal = Excite.Goal(
                motion=motion, duration=duration, seed=seed, speed_scale=scale, lease=True, prior=prior
            )
            self._excite(purpose, name, goal)
        answer = client.trigger("recorder/stop")
        self.recording = False
        if not answer.success:
            raise FlowError(answer.message)

        def arrived() -> bool:
            return bool(self.identifier) and name in self.identifier[-1].recordings

        client.until(arrived, f"{name} did not reach the identifier; check that it runs in the same namespace", 20.0)
        return name

    def _start_recording(self) -> str:
        """Name of the recording that has begun; refused until the recorder hears what it is to record."""
        answer = self.client.trigger("recorder/start")
        if not answer.success:
            raise FlowError(answer.message)
        self.recording = True
        return answer.message

    def _excite(self, purpose: str, name: str, goal: Excite.Goal) -> None:
        """One motion of the excitation node."""
        client = self.client
        client.say(f"{purpose} motion ({goal.motion}): recording as {name}")

        def describe(feedback: Excite.Feedback) -> tuple[str, float]:
            return f"{purpose}: {feedback.stage or 'checking'}", feedback.fraction

        def watch() -> str:
            return self.excitation.gone("excitation") or self.recorder.gone("recorder") or self._not_recording(name)

        status, result = client.run_action(Excite, "excitation/excite", goal, describe, _MOTION_S, True, watch)
        if status != GoalStatus.STATUS_SUCCEEDED:
            raise FlowError(f"{purpose} motion: {result.message}")
        client.say(f"{purpose} motion: {result.message}, condition number {result.condition_number:.1f}")

    def _move_by_itself(self, purpose: str, name: str) -> None:
        """Ask the robot to move, and wait until it has."""
        client, options = self.client, self.options
        client.say(f"{purpose} motion: recording as {name}")
        answer = client.trigger(options.move_service)
        if not answer.success:
            raise FlowError(f"{purpose} motion: {answer.message}")
        client.say(f"{purpose} motion: {answer.message}")
        told = f"{options.moving_topic} does not say that the robot moves; check the topic"
        client.until(lambda: self.moving and self.moving[-1].data, told, self.options.wait_s)

        def ended() -> bool:
            if problem := self.recorder.gone("recorder") or self._not_recording(name):
                raise FlowError(problem)
            return not self.moving[-1].data

        client.until(ended, f"{purpose} motion: the robot does not end it", _MOTION_S)

    def _not_recording(self, name: str) -> str:
        """Why a motion is of no use any more: the recorder writes nothing."""
        status = self.recorder.last
        return f"the recorder stopped: {status.message}" if status is not None and status.name != name else ""

    def _identify(self, train: Sequence[str], held_out: str, previous: str = "") -> Identify.Result:
        client, options = self.client, self.options
        output = options.output_directory
        if output and options.rounds > 1:
            output = str(Path(output) / f"round_{len(train)}")
        goal = Identify.Goal(
            train=list(train),
            validation=[held_out],
            output_directory=output,
            previous=previous,
            rounds=options.rounds,
            wanted_deviation=options.wanted_deviation,
            least_gain=options.least_gain,
        )

        def describe(feedback: Identify.Feedback) -> tuple[str, float]:
            return f"identifying: {feedback.stage or 'starting'}", feedback.fraction

        status, result = client.run_action(Identify, "identifier/identify", goal, describe, _IDENTIFY_S)
        if status != GoalStatus.STATUS_SUCCEEDED:
            raise FlowError(f"identification: {result.message}")
        if options.rounds > 1:
            gain = "" if math.isnan(result.gain) else f", {100 * result.gain:.0f} % better than before"
            client.say(f"round {len(train)}: torque known to {100 * result.torque_deviation:.2g} %{gain}")
        return result

    def _conclude(self, result: Identify.Result) -> int:
        """Say what came of it; the exit status."""
        client = self.client
        client.until(
            lambda: self.report and self.report[-1].message == result.message, "no identifier/report arrived", 10.0
        )
        if self.options.tables:
            print_report(json.loads(self.report[-1].report_json))
        else:
            client.say(result.message)
        if self.options.rounds > 1:
            client.say(f"rounds ended: {result.stop_reason}")
        if result.result_directory and (self.options.tables or self.options.rounds > 1):
            client.say(f"result: {result.result_directory}")
        return _DONE if result.validation_status == InertialParameters.PASSED else _REJECTED

    def _disarm(self) -> None:
        if self.by_itself:
            return
        self.armed = False
        self.client.change_state("excitation", Transition.TRANSITION_DEACTIVATE)

    def _leave(self) -> None:
        """Nothing stays armed or recording, whatever happened; a node that is gone is no reason to fail here."""
        for step, needed in (
            (self._disarm, self.armed),
            (lambda: self.client.trigger("recorder/stop"), self.recording),
        ):
            try:
                if needed:
                    step()
            except (InertidError, Interrupted) as error:
                self.client.complain(str(error))


def main() -> int:
    """Entry point of the executable."""
    try:
        with FlowClient("calibrate", lease_topic="excitation/lease") as client:
            try:
                return Flow(client, declare(client.node, CalibrateOptions)).run()
            except Interrupted:
                client.complain("interrupted; the robot is at rest")
                return _INTERRUPTED
            except InertidError as error:
                client.complain(str(error))
                return _FAILED
    except InertidError as error:
        print(f"error: {error}", file=sys.stderr)
        return _FAILED


if __name__ == "__main__":
    sys.exit(main())
