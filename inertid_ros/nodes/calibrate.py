"""The calibration flow: excite and record, repeat for held-out data, identify, validate, publish.

The flow is a client of the other nodes, and renews the lease of the motion: when this process ends, the robot stops.
Ctrl-C cancels the flow and brings the robot to rest. Exit status: 0 done, possibly with a warning; 2 something is
missing or failed; 3 the result must not be used; 130 interrupted.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from action_msgs.msg import GoalStatus
from std_srvs.srv import Trigger

from inertid_ros.action import Excite, Identify
from inertid_ros.cli.printing import print_report
from inertid_ros.config.nodes import CalibrateOptions
from inertid_ros.msg import IdentificationReport, IdentifierStatus, InertialParameters, RecorderStatus
from inertid_ros.ros.topics import LATCHED

from .flow import DONE, REJECTED, ExcitationMover, Mover, SelfMovingRobot, run_flow
from .flow_client import FlowClient, FlowError

_IDENTIFY_TIMEOUT_S = 1800.0
_SEED_STEP = 1000  # between rounds, so that every seed differs from the seed of the held-out motion


class CalibrationFlow:
    """The steps of a calibration, in order. Every step raises FlowError with one line that names the remedy."""

    def __init__(self, client: FlowClient, options: CalibrateOptions) -> None:
        self.client, self.options = client, options
        self.identifier = client.serving_node("identifier", IdentifierStatus, "recordings are kept by the recorder")
        self.report = client.received(IdentificationReport, "identifier/report", LATCHED)
        self.recorder = client.serving_node("recorder", RecorderStatus)
        by_itself = options.moved_by == "robot"
        self.mover: Mover = SelfMovingRobot(client, options) if by_itself else ExcitationMover(client, options.wait_s)
        self.recording, self.is_recording = "", False  # name of the present recording
        client.note = lambda: self._coverage(self.recording)

    def run(self) -> int:
        self._wait_for_nodes()
        self.mover.arm()
        options = self.options
        train = [self._record("training", Excite.Goal(plan_file=_absolute(options.plan)))]
        plan = _absolute(options.validation_plan)
        held_out = self._record("held-out", Excite.Goal(plan_file=plan, held_out=True))
        if options.rounds == 1:
            self._end_motions()
        result = self._identify(train, held_out)
        while not result.stop_reason and len(train) < options.rounds:
            train.append(self._next_round(len(train) + 1, result))
            result = self._identify(train, held_out, result.result_directory)
        self._end_motions()
        return self._conclude(result)

    def _end_motions(self) -> None:
        """Disarm; from now on, the flow needs neither the node that moves the robot nor the recorder."""
        self.mover.disarm()
        self.recorder.needed = False

    def _next_round(self, number: int, result: Identify.Result) -> str:
        """Record a motion that excites the least determined parameters; return the name of the recording."""
        if not result.result_directory:
            raise FlowError("the next round needs a result, but the identifier did not write it; set output_directory")
        seed = _SEED_STEP * (number - 1)
        return self._record(f"round {number}", Excite.Goal(seed=seed, prior=result.result_directory))

    def _wait_for_nodes(self) -> None:
        client, wait = self.client, self.options.wait_s
        client.show(f"waiting for {self.mover.name}, recorder and identifier")
        self.mover.wait(wait)
        for service in ("recorder/start", "recorder/stop"):
            client.wait_for_service(Trigger, service, wait)
        client.wait_for_action(Identify, "identifier/identify", wait)

        def problem() -> str:
            for name, node in (("recorder", self.recorder), ("identifier", self.identifier)):
                if node.last is None:
                    return f"the {name} publishes no status; start it in the namespace of this node"
            waiting = self.identifier.last.state == IdentifierStatus.WAITING
            return f"the identifier is not ready: {self.identifier.last.message}" if waiting else ""

        client.until(lambda: not problem(), problem, wait)
        if name := self.recorder.last.name:  # left by a killed flow, for example
            answer = client.trigger("recorder/stop")
            client.show(f"{name} was still being recorded: {'ended' if answer.success else answer.message}")

    def _record(self, purpose: str, goal: Excite.Goal) -> str:
        client = self.client
        name = client.with_retries(self._start_recording, self.options.wait_s)
        goal.speed_scale, goal.confirm = self.options.speed_scale, self.options.confirm
        self.mover.move(purpose, goal, lambda: self._check_recording(name))
        answer = client.trigger("recorder/stop")
        self.recording, self.is_recording = "", False
        if not answer.success:
            raise FlowError(answer.message)

        def has_arrived() -> bool:
            return self.identifier.last is not None and name in self.identifier.last.recordings

        absent = f"{name} did not arrive at the identifier; check that both run in one namespace"
        client.until(has_arrived, absent, 20.0)
        client.show(f"{purpose} motion: {'; '.join(filter(None, (name, self._coverage(name))))}")
        return name

    def _coverage(self, name: str) -> str:
        """Return the torque uncertainty after the recording so far, and the data still needed; empty if unknown."""
        status = self.identifier.last
        if status is None or not name or status.recording != name or not status.torque_deviation:
            return ""
        deviation, joint = max(zip(status.torque_deviation, status.joint_names, strict=False))
        text = f"torque uncertainty {100 * deviation:.2g} % ({joint})" if deviation < 1 else f"{joint} is undetermined"
        return f"{text}; still needed: {status.still_needed}" if status.still_needed else text

    def _start_recording(self) -> str:
        self.is_recording = True  # before the request, which may take effect although its answer is lost
        answer = self.client.trigger("recorder/start")
        self.is_recording = answer.success
        if not answer.success:
            raise FlowError(answer.message)
        self.recording = str(answer.message)
        return self.recording

    def _check_recording(self, name: str) -> None:
        """Raise FlowError if the recorder has stopped, which makes the motion useless."""
        status = self.recorder.last
        if status is not None and status.name != name:
            raise FlowError(f"the recorder stopped: {status.message}")

    def _identify(self, train: Sequence[str], held_out: str, previous: str = "") -> Identify.Result:
        client, options = self.client, self.options
        output = options.output_directory
        if output and options.rounds > 1:
            output = str(Path(output) / f"round_{len(train)}")
        goal = Identify.Goal(
            train=list(train), validation=[held_out], output_directory=output, previous=previous, rounds=options.rounds,
            wanted_deviation=options.wanted_deviation, least_gain=options.least_gain)

        status, result = client.run_action(
            Identify, "identifier/identify", goal,
            lambda feedback: (f"identifying: {feedback.stage or 'starting'}", feedback.fraction), _IDENTIFY_TIMEOUT_S)
        if status != GoalStatus.STATUS_SUCCEEDED:
            raise FlowError(f"identification: {result.message}")
        if options.rounds > 1:
            client.show(f"round {len(train)}: torque uncertainty {100 * result.torque_deviation:.2g} %")
        return result

    def _conclude(self, result: Identify.Result) -> int:
        client = self.client

        def has_arrived() -> bool:
            return self.report.last is not None and self.report.last.message == result.message

        client.until(has_arrived, "no identifier/report arrived", 10.0)
        tables = self.options.tables and client.on_terminal
        if tables:
            print_report(json.loads(self.report.last.report_json))
        if self.options.rounds > 1:
            client.show(f"rounds ended: {result.stop_reason}")
        care = result.verdict == InertialParameters.USE_WITH_CARE
        message = result.message if care or not tables else ""
        directory = result.result_directory and f"result: {result.result_directory}"
        if text := "; ".join(filter(None, (message, directory))):
            (client.show_warning if care else client.show)(text)
        return REJECTED if result.verdict == InertialParameters.DO_NOT_USE else DONE

    def leave(self) -> None:
        stop = [lambda: self.client.trigger("recorder/stop")] if self.is_recording else []
        self.client.attempt_all([self.mover.disarm, *stop])


def _absolute(plan: str) -> str:
    """Return the absolute path of a plan file, as nodes may run in other directories; an empty path stays empty."""
    return str(Path(os.path.expanduser(plan)).absolute()) if plan else ""


def main() -> int:
    return run_flow("calibrate", CalibrateOptions, CalibrationFlow)
