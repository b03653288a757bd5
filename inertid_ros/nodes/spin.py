"""The main loop of every node: signals, faults and exit status; workarounds for rclpy."""

import ctypes
import gc
import inspect
import math
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

import rclpy
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.action import ActionServer
from rclpy.exceptions import NameValidationException
from rclpy.executors import ExternalShutdownException, ShutdownException, SingleThreadedExecutor, TimeoutException
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.time_source import TimeSource
from rclpy.waitable import NumberOfEntities
from rosgraph_msgs.msg import Clock as ClockMessage

from inertid_ros.core.errors import InertidError, check_address_space, one_line
from inertid_ros.ros.conversions import NANOSECONDS
from inertid_ros.ros.node_parameters import check_given_parameters
from inertid_ros.ros.topics import STEADY

_SPIN_TIMEOUT_S = 0.05  # a signal is noticed within this time, also without other events
_CALLBACK_PERIOD_S = 0.01  # between two checks for callbacks of a ticking node without callbacks_s
_NICE_VALUE = -10  # nice value of a node that moves a robot, and of the recorder
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SIGEV_THREAD = 2  # from <signal.h>
_MIDDLEWARE_END_S = 1.0  # longest shutdown of the middleware before the process is killed
_CALLBACK_END_S = 2.0  # for a node that does not move a robot to finish its callback, close its files, and end
# Seconds of a stamp must be below 2**31, or ROS raises an error. The margin of a year covers durations that nodes add.
_LATEST_STAMP_S = 2**31 - 366 * 86400
LONGEST_END_S = 15.0  # for a moving robot to rest, where simulated time may stand still; the longest brake ends sooner
MIN_ADDRESS_SPACE_MIB = 1024  # for a node, including threads of Fast DDS


def raise_priority(node: Node, priority: int) -> None:
    """Raise the priority of this node if the system allows it; call this after the node's threads have started.

    With ``priority`` above 0, only the calling thread gets SCHED_FIFO: a thread of Fast DDS with SCHED_FIFO that
    busy-waits for another thread could keep that thread from running. If ``priority`` is 0, or SCHED_FIFO is not
    allowed, all threads get a lower nice value instead.
    """
    try:
        if priority:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
            return
    except OSError as error:
        node.get_logger().warning(f"realtime_priority: not allowed ({error.strerror}); raise the rtprio limit")
    with suppress(OSError):  # not allowed, or not Linux: the priority stays
        for thread in os.listdir("/proc/self/task"):
            os.setpriority(os.PRIO_PROCESS, int(thread), _NICE_VALUE)


def _give_up_priority() -> None:
    """Give up the priority of a node that ends; threads of its middleware may spin and would delay other nodes."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        for thread in map(int, os.listdir("/proc/self/task")):
            if os.getpriority(os.PRIO_PROCESS, thread) < 0:
                os.setpriority(os.PRIO_PROCESS, thread, 0)


def run_node(make: Callable[[], Any]) -> int:
    """Make a node, spin it until SIGINT or SIGTERM, and return the exit status of the process.

    Optional members of a node: ``begin_shutdown()`` is called once after a signal; the node then spins until the
    property ``shutdown_complete`` is True. ``on_fault(error)`` is called after an exception in a callback, or
    ``begin_shutdown()`` if there is no ``on_fault``. The node ends when the property ``done`` is True. ``tick()`` is
    called every ``tick_s``, see :class:`TickedSpin`.

    The status is 0 after a signal or when done, 1 after an uncaught exception, 2 if the node could not start.
    """
    handle_signals(lambda *_signal: os._exit(0))  # a node that is being made does not move a robot
    try:
        check_address_space("a node", MIN_ADDRESS_SPACE_MIB)
        init_rclpy()
        node = make()
        check_given_parameters(node)
        refuse_unknown_parameter_types(node)
    except (InertidError, NameValidationException) as error:
        rclpy.try_shutdown()
        remedy = "" if isinstance(error, InertidError) else "; correct the parameter with this name"
        print(f"error: {one_line(str(error))}{remedy}", file=sys.stderr)
        return 2
    stop = _StopRequest(moves_nothing=not hasattr(type(node), "shutdown_complete"))
    handle_signals(stop.on_signal)
    inspect.getframeinfo(sys._getframe())  # rclpy's first log calls this function, whose first call takes 0.2 s
    gc.collect()
    gc.freeze()  # a collection over all loaded modules takes 0.2 s and would delay every watchdog
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    status = 1
    try:
        status = _spin(node, executor, stop)
    finally:
        handle_signals(signal.SIG_IGN)  # a second signal, as `ros2 launch` sends, would change the exit status
        end_within(status)
        _give_up_priority()
        executor.shutdown(timeout_sec=0.0)
        node.destroy_node()
        rclpy.try_shutdown()
    return status


def init_rclpy() -> None:
    """Initialize rclpy without its signal handlers; raise InertidError for invalid arguments or parameter files."""
    ignore_impossible_times()
    try:
        rclpy.init(signal_handler_options=rclpy.SignalHandlerOptions.NO)
    except RuntimeError as error:
        reason = str(error).partition(", at /")[0].removeprefix("failed to initialize rcl: ")
        raise InertidError(f"ROS arguments: {reason.rstrip()}; correct the text after --ros-args") from None


def handle_signals(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    """Install a handler for SIGINT and SIGTERM."""
    for number in _SIGNALS:
        signal.signal(number, handler)


def ignore_impossible_times() -> None:
    """Let all nodes of this process ignore times of ``/clock`` that are out of the range of stamps.

    Otherwise rclpy raises an exception in its callback, which ends the node: a single time before 1970 would end all
    nodes with ``use_sim_time``, even during a motion.
    """
    received: Any = TimeSource.clock_callback
    if hasattr(received, "ignores_impossible_times"):
        return

    def guarded(self: TimeSource, message: ClockMessage) -> None:
        if 0 <= message.clock.sec < _LATEST_STAMP_S and message.clock.nanosec < NANOSECONDS:
            received(self, message)
            return
        node: Any = self._get_node()
        if node is not None:
            node.get_logger().warning(
                f"/clock has the invalid time {message.clock.sec} s and {message.clock.nanosec} ns, which is ignored;"
                " check its publisher (ros2 topic info -v /clock)",
                once=True)

    guarded.ignores_impossible_times = True  # type: ignore[attr-defined]
    TimeSource.clock_callback = guarded


class _TimerEvent(ctypes.Structure):
    """``struct sigevent`` of Linux: on expiry, a new thread calls a function of one argument."""

    _fields_ = (
        ("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("notify", ctypes.c_int),
        ("function", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("unused", ctypes.c_int * 8),
    )  # fmt: skip


def end_within(status: int, within_s: float = _MIDDLEWARE_END_S) -> None:
    """End this process soon, even if the middleware hangs; files must be closed and the robot at rest by then.

    Fast DDS sometimes spins forever while a node is destroyed, and holds Python's GIL meanwhile. Neither threads nor
    signal handlers of Python run then; therefore a timer of the operating system calls ``_exit``.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(RuntimeError):  # a signal handler may have interrupted a write to the stream
            stream.flush()
    library = ctypes.CDLL(None)
    exit_address = ctypes.cast(library._exit, ctypes.c_void_p).value
    event, timer = _TimerEvent(status, 0, _SIGEV_THREAD, exit_address), ctypes.c_void_p()
    if library.timer_create(time.CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer)) == 0:
        seconds, nanoseconds = divmod(round(within_s * 1e9), 10**9)
        due = (ctypes.c_long * 4)(0, 0, seconds, nanoseconds)  # struct itimerspec: no repetition, then the delay
        library.timer_settime(timer, 0, ctypes.byref(due), None)


class _StopRequest:
    """Stop request by a signal; a node that does not move a robot then ends within 2 s, even during a callback.

    A ``threading.Event`` is not suitable, as its lock is not reentrant: a second signal during the handler of the first
    signal would wait for a lock of its own thread, forever or until further signals overflow the stack.
    """

    def __init__(self, moves_nothing: bool) -> None:
        self.requested, self._moves_nothing = False, moves_nothing

    def on_signal(self, _number: int, _frame: FrameType | None) -> None:
        first, self.requested = not self.requested, True  # must come first: the next signal may arrive at any time
        if first and self._moves_nothing:  # a long callback must not delay the end of the process
            end_within(0, _CALLBACK_END_S)


class _Requests:
    """Wait for requests to the services and actions that a node has now, by a small wait set of their own."""

    def __init__(self, node: Node) -> None:
        self._services = [service.handle for service in node.services]
        self._actions = [waitable for waitable in node.waitables if isinstance(waitable, ActionServer)]
        count = NumberOfEntities(num_services=len(self._services))
        for action in self._actions:
            count += action.get_num_entities()
        self._wait_set = rclpy_implementation.WaitSet(
            count.num_subscriptions, count.num_guard_conditions, count.num_timers, count.num_clients,
            count.num_services, count.num_events, node.context.handle)  # fmt: skip

    def wait(self, seconds: float) -> bool:
        """Return True as soon as a request is pending, or False after ``seconds``."""
        self._wait_set.clear_entities()
        for service in self._services:
            self._wait_set.add_service(service)
        for action in self._actions:
            action.add_to_wait_set(self._wait_set)
        self._wait_set.wait(round(seconds * 1e9))
        return any(self._wait_set.get_ready_entities("service"))


class TickedSpin:
    """Run the ticks of a node at a high rate, its callbacks at a lower rate, and requests at once.

    Ticks bypass the executor: rclpy's executors rebuild their wait set at every wake-up, which takes longer than most
    ticks; an empty timer of 200 Hz costs a fifth of a core. The node has ``tick()`` and ``tick_s``, the time between
    two ticks [s, steady clock]; missed ticks are skipped. A request, such as to stop, is answered at once, and a tick
    follows. A node may set ``callbacks_s``, the time between two checks for callbacks [s]; requests then wait, too.
    """

    def __init__(self, executor: SingleThreadedExecutor, node: Any) -> None:
        self._executor, self._tick, self._period = executor, node.tick, node.tick_s
        self._callbacks_s = getattr(node, "callbacks_s", _CALLBACK_PERIOD_S)
        self._requests = None if hasattr(node, "callbacks_s") else _Requests(node)
        self._next_tick = self._next_callbacks = time.monotonic()

    def spin_once(self) -> None:
        """Wait until a tick or a check for callbacks is due or a request comes; run waiting callbacks, then tick."""
        seconds = max(min(self._next_tick, self._next_callbacks) - time.monotonic(), 0.0)
        if self._requests is None:
            time.sleep(seconds)
        elif self._requests.wait(seconds):
            self._next_tick = self._next_callbacks = time.monotonic()
        now = time.monotonic()
        if now >= self._next_callbacks:
            self._next_callbacks = now + self._callbacks_s
            self._run_callbacks()
        now = time.monotonic()
        if now >= self._next_tick:
            self._next_tick += self._period * (1 + (now - self._next_tick) // self._period)
            self._tick()

    def _run_callbacks(self) -> None:
        """Run each waiting callback once.

        The pass must be complete before :class:`_Requests` waits again: a server of actions remembers its places in
        the wait set to which it was added last.
        """
        while True:
            try:
                callback, _, _ = self._executor.wait_for_ready_callbacks(timeout_sec=0.0)
            except (TimeoutException, ShutdownException):
                return
            callback()
            callback.result()  # raises its exception


def tick_by_timer(node: Any) -> None:
    """Tick a node by a timer of its executor, for nodes that share an executor or use simulated time."""
    node.create_timer(node.tick_s, node.tick, clock=STEADY)


def _spin(node: Any, executor: SingleThreadedExecutor, stop: _StopRequest) -> int:
    ending, latest, begin_shutdown = False, math.inf, getattr(node, "begin_shutdown", lambda: None)
    spin_once: Callable[[], None] = lambda: executor.spin_once(timeout_sec=_SPIN_TIMEOUT_S)  # noqa: E731
    if hasattr(node, "tick") and node.get_clock().ros_time_is_active:  # callbacks of the executor advance ROS time
        tick_by_timer(node)
    elif hasattr(node, "tick"):
        spin_once = TickedSpin(executor, node).spin_once
    try:
        while not (ending and (getattr(node, "shutdown_complete", True) or time.monotonic() > latest)):
            spin_once()
            if getattr(node, "done", False):
                return 0
            if stop.requested and not ending:
                ending = True
                if node.get_clock().ros_time_is_active:  # simulated time may stand still
                    latest = time.monotonic() + LONGEST_END_S
                begin_shutdown()
    except ExternalShutdownException:
        return 0
    except Exception as error:  # after any error the robot must come to rest before the process ends
        node.get_logger().fatal(str(error) if isinstance(error, InertidError) else f"{type(error).__name__}: {error}")
        if hasattr(node, "on_fault"):
            node.on_fault(error)
        else:
            begin_shutdown()
        return 1
    return 0


def refuse_impossible_transitions(node: LifecycleNode) -> None:
    """Answer a request for a transition that is impossible in the present state with ``success=False``.

    Otherwise rclpy raises an exception in its service callback, which ends the node: a request to activate an active
    node would stop the robot.
    """
    service: Any = getattr(node, "_service_change_state", None)
    if service is None:
        return
    answer: Callable[[ChangeState.Request, ChangeState.Response], ChangeState.Response] = service.callback

    def guarded(request: ChangeState.Request, response: ChangeState.Response) -> ChangeState.Response:
        try:
            return answer(request, response)
        except Exception as error:
            if "ransition" not in str(error):
                raise
            node.get_logger().error(f"transition {request.transition.id} is not possible in the present state")
            response.success = False
            return response

    service.callback = guarded


def refuse_unknown_parameter_types(node: Node) -> None:
    """Refuse requests to set a parameter of an unknown type.

    Otherwise rclpy raises an exception in its service callback, which ends the node, even during a motion.
    """
    known = {kind.value for kind in Parameter.Type}

    def guarded(answer: Callable[[Any, Any], Any], request: Any, response: Any) -> Any:
        unknown = [parameter for parameter in request.parameters if parameter.value.type not in known]
        if not unknown:
            return answer(request, response)
        reason = f"parameter {unknown[0].name!r} has the unknown type {unknown[0].value.type}"
        refused = SetParametersResult(successful=False, reason=reason)
        if isinstance(request, SetParameters.Request):
            response.results = [refused] * len(request.parameters)
        else:
            response.result = refused
        return response

    for service in node.services:
        if service.srv_type in (SetParameters, SetParametersAtomically):
            service.callback = partial(guarded, service.callback)
