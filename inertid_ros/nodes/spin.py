"""The main loop of every node: signals, faults and exit status; repairs of rclpy."""

import ctypes
import gc
import inspect
import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import rclpy
from lifecycle_msgs.srv import ChangeState
from rclpy.executors import ExternalShutdownException, ShutdownException, SingleThreadedExecutor, TimeoutException
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.time_source import TimeSource
from rosgraph_msgs.msg import Clock as ClockMessage

from inertid_ros.core.blas_threads import check_address_space
from inertid_ros.core.errors import InertidError
from inertid_ros.ros.conversions import NANOSECONDS
from inertid_ros.ros.parameters import check_given_parameters
from inertid_ros.ros.topics import STEADY

_SPIN_TIMEOUT_S = 0.05  # a signal is noticed within this time, also if nothing else happens
_CALLBACK_PERIOD_S = 0.01  # between two looks for callbacks of a node that ticks, unless it has callbacks_s
_NICE_VALUE = -10  # of a node that moves a robot
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SIGEV_THREAD = 2  # of <signal.h>
_MIDDLEWARE_END_S = 1.0  # for the middleware to end
_CALLBACK_END_S = 2.0  # for what a node that moves nothing does at the moment, to close its files, and to end
# Stamps end at 2**31 s. A node adds to the present time what it does next, and a stamp too late is an error of its own.
_LATEST_STAMP_S = 2**31 - 366 * 86400
MIN_ADDRESS_SPACE_MIB = 1024  # that a node needs, threads of Fast DDS included


def raise_priority(node: Node, priority: int) -> None:
    """Let this process run before others, if the system allows it; call it once the node has its threads.

    Without a real-time priority every thread gets a lower nice value, which harms nobody. In real time (SCHED_FIFO)
    threads of Fast DDS, which wait actively for one another at times, may keep whatever they wait for from running.
    """
    try:
        if priority:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
            return
    except OSError as error:
        node.get_logger().warning(f"realtime_priority: not allowed ({error.strerror}); raise the rtprio limit")
    try:
        for thread in os.listdir("/proc/self/task"):
            os.setpriority(os.PRIO_PROCESS, int(thread), _NICE_VALUE)
    except OSError:  # not allowed, or no Linux: as all others then
        pass


def run_node(make: Callable[[], Any]) -> int:
    """Make a node, spin it until SIGINT or SIGTERM, and return the exit status of the process.

    A node may have ``begin_shutdown()``, called once when a signal comes; ``shutdown_complete`` (a property), which is
    awaited while the node still spins; ``on_fault(error)``, called in its place when a callback raised; and ``done`` (a
    property), by which it ends itself. One that has ``tick()`` is ticked every ``tick_s``, see :class:`TickedSpin`.

    The status is 0 after a signal or when done, 1 after an uncaught exception, 2 if the node could not start.
    """
    stop = _StopRequest()
    try:
        check_address_space("a node", MIN_ADDRESS_SPACE_MIB)
        handle_signals(stop.on_signal)
        init_rclpy()
        node = make()
        check_given_parameters(node)
    except InertidError as error:
        rclpy.try_shutdown()
        print(f"error: {error}", file=sys.stderr)
        return 2
    stop.moves_nothing = not hasattr(type(node), "shutdown_complete")
    inspect.getframeinfo(sys._getframe())  # rclpy's first log calls it, and it walks all loaded modules once, for 0.2 s
    gc.collect()
    gc.freeze()  # a collection that walks all loaded modules takes 0.2 s, in which no watchdog would run
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    status = 1
    try:
        status = _spin(node, executor, stop)
    finally:
        ignore_signals()
        end_surely(status)
        executor.shutdown(timeout_sec=0.0)
        node.destroy_node()
        rclpy.try_shutdown()
    return status


def init_rclpy() -> None:
    """Initialize rclpy without its signal handlers; InertidError if it cannot read arguments or a parameter file."""
    ignore_impossible_times()
    try:
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    except RuntimeError as error:
        reason = str(error).partition(", at /")[0].removeprefix("failed to initialize rcl: ")
        raise InertidError(f"ROS arguments: {reason.rstrip()}; correct what follows --ros-args") from None


def handle_signals(handler: Callable[[int, FrameType | None], None]) -> None:
    """Hand SIGINT and SIGTERM to a handler."""
    for number in _SIGNALS:
        signal.signal(number, handler)


def ignore_signals() -> None:
    """Ignore SIGINT and SIGTERM: a terminal and `ros2 launch` both send one, and the second would change the status."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def ignore_impossible_times() -> None:
    """Have all nodes of this process ignore times of ``/clock`` that no stamp can hold; the time before stays.

    rclpy raises in its callback instead, which ends the node: a single time before 1970 would end all nodes with
    ``use_sim_time``, also in motion.
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
                f"/clock says {message.clock.sec} s and {message.clock.nanosec} ns, which is no time, and is left out;"
                " check who publishes it (ros2 topic info -v /clock)",
                once=True)

    guarded.ignores_impossible_times = True  # type: ignore[attr-defined]
    TimeSource.clock_callback = guarded


class _TimerEvent(ctypes.Structure):
    """``struct sigevent`` of Linux: on expiry, a new thread calls a function of one argument."""

    _fields_ = (
        ("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("notify", ctypes.c_int),
        ("function", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("unused", ctypes.c_int * 8),
    )  # fmt: skip


def end_surely(status: int, within_s: float = _MIDDLEWARE_END_S) -> None:
    """End this process within a time, even if the middleware hangs; by then files are closed and the robot is at rest.

    Fast DDS has been seen to spin for ever while a node is destroyed. It then keeps Python's lock, so that neither
    threads nor signal handlers of Python run: a timer of the system calls ``_exit`` instead.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    library = ctypes.CDLL(None)
    exit_address = ctypes.cast(library._exit, ctypes.c_void_p).value
    event, timer = _TimerEvent(status, 0, _SIGEV_THREAD, exit_address), ctypes.c_void_p()
    if library.timer_create(time.CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer)) == 0:
        seconds, nanoseconds = divmod(round(within_s * 1e9), 10**9)
        due = (ctypes.c_long * 4)(0, 0, seconds, nanoseconds)  # struct itimerspec: no repetition, then the time
        library.timer_settime(timer, 0, ctypes.byref(due), None)


class _StopRequest:
    """Whether a signal asked for the end; a node that moves nothing then ends in time, whatever it is doing.

    No ``threading.Event``: its lock is not reentrant, and a second signal that comes while the handler of the first one
    holds it waits for it, in the same thread and therefore for ever, or until all signals that follow have filled the
    stack.
    """

    made = False
    moves_nothing = True  # nor does a node that is being made

    def on_signal(self, _number: int, _frame: FrameType | None) -> None:
        first, self.made = not self.made, True  # before all else: the next signal may come meanwhile
        if first and self.moves_nothing:  # a long callback must not hold up its end
            end_surely(0, _CALLBACK_END_S)


class TickedSpin:
    """Ticks of a node at a high rate, and its callbacks at a lower one.

    An executor builds its wait set again whenever it wakes up, which takes rclpy longer than most ticks do: a timer of
    200 Hz costs a fifth of a core before it has done anything. The node has ``tick()`` and ``tick_s``, the time between
    two ticks [s, steady clock], of which missed ones are left out; it may have ``callbacks_s``, the time between two
    looks for callbacks [s].
    """

    def __init__(self, executor: SingleThreadedExecutor, node: Any) -> None:
        self._executor, self._tick, self._period = executor, node.tick, node.tick_s
        self._callbacks_s = getattr(node, "callbacks_s", _CALLBACK_PERIOD_S)
        self._due = self._look = time.monotonic()

    def spin_once(self) -> None:
        """Tick if that is due, run callbacks if some may wait, and sleep if neither is due.

        Callbacks have half of a period of processor time, so that they are not starved if ticks are always late.
        """
        now = time.monotonic()
        if now >= self._due:
            self._due += self._period * (1 + (now - self._due) // self._period)
            self._tick()
        elif now < self._look:
            time.sleep(min(self._due, self._look) - now)
        end = time.thread_time() + 0.5 * self._period
        while now >= self._look and time.thread_time() < end:
            if not self._run_callback():
                self._look = now + self._callbacks_s

    def _run_callback(self) -> bool:
        try:
            callback, _, _ = self._executor.wait_for_ready_callbacks(timeout_sec=0.0)
        except (TimeoutException, ShutdownException):
            return False
        callback()
        callback.result()  # or its exception
        return True


def tick_by_timer(node: Any) -> None:
    """Have the executor of a node tick it, for nodes that share one."""
    node.create_timer(node.tick_s, node.tick, clock=STEADY)


def _spin(node: Any, executor: SingleThreadedExecutor, stop: _StopRequest) -> int:
    ending, begin_shutdown = False, getattr(node, "begin_shutdown", lambda: None)
    spin_once: Callable[[], None] = lambda: executor.spin_once(timeout_sec=_SPIN_TIMEOUT_S)  # noqa: E731
    if hasattr(node, "tick") and node.get_clock().ros_time_is_active:  # which advances by callbacks
        tick_by_timer(node)
    elif hasattr(node, "tick"):
        spin_once = TickedSpin(executor, node).spin_once
    try:
        while not (ending and getattr(node, "shutdown_complete", True)):
            spin_once()
            if getattr(node, "done", False):
                return 0
            if stop.made and not ending:
                ending = True
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
    """Answer requests for transitions that the present state does not have with ``success=False``.

    rclpy raises in its service callback instead, which ends the node: a request to activate an active node would stop
    the robot.
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
