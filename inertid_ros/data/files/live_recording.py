"""Check, count, synchronise and write messages while a robot moves."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from inertid_ros.core.arrays import Array, IntArray, Mask
from inertid_ros.core.errors import RecordingError
from inertid_ros.data.assembly import RecordingAssembler, StampOrderError
from inertid_ros.data.long_recording import Block

from .live_bag import LiveBag

_RATE_STEPS = 200  # recent stamp steps; their median gives the rate
_MIN_GAP_STEPS = 10  # with fewer, the rate is too uncertain to find a gap


@dataclass
class MessageCounts:
    """Numbers of messages so far."""

    accepted: int = 0  # joint states written and handed on
    rejected: int = 0  # not finite, of wrong length or joints, or too large
    out_of_order: int = 0  # stamps repeat, or go back too far; a slightly late message is put in order
    gaps: int = 0  # long steps between stamps, at which samples were lost


class LiveRecording:
    """A recording in progress: all messages pass the same checks, whether they go to the bag or to a batch.

    Rejected messages are not stored, so that the bag holds exactly the messages of the batches.

    Parameters
    ----------
    assembler : synchronises the channels; also an attribute.
    bag : bag to which accepted messages are written unchanged.
    max_gap_periods : a step between stamps above this many median steps is a gap.
    prelude : topic index and content of messages that are written to the bag before all other messages.

    Attributes
    ----------
    last_error : reason of the last rejection; empty if all messages were accepted.
    """

    def __init__(self, assembler: RecordingAssembler, bag: LiveBag | None = None, max_gap_periods: float = 4.0,
            prelude: Sequence[tuple[int, bytes]] = ()) -> None:
        self.bag = bag
        self.counts = MessageCounts()
        self.last_error = ""
        self.assembler = assembler
        self._max_gap_periods = max_gap_periods
        self._steps: deque[int] = deque(maxlen=_RATE_STEPS)
        self._first_ns = self._last_ns = 0
        self._silent: dict[tuple[str, ...], Mask] = {}
        self._gap_stamps: list[int] = []
        self._prelude, self._written_ns = list(prelude), 0

    @property
    def name(self) -> str:
        return self.assembler.name

    @property
    def seconds(self) -> float:
        """Time between the first and the last accepted stamp [s]."""
        return (self._last_ns - self._first_ns) * 1e-9

    @property
    def rate_hz(self) -> float:
        """Rate of the joint states [Hz], from the median of recent stamp steps; 0 while unknown."""
        return 1e9 / float(np.median(self._steps)) if self._steps else 0.0

    def add_joint_state(self, topic: int, data: bytes, names: Sequence[str], stamp_ns: int,
            channels: Sequence[ArrayLike]) -> bool:
        """Take one joint state; False if it was rejected (:attr:`last_error`); see :meth:`add_joint_states`."""
        rows = [np.atleast_2d(np.asarray(values, dtype=float)) for values in channels]
        return self.add_joint_states(topic, [data], names, np.array([stamp_ns]), rows)[0]

    def add_joint_states(self, topic: int, messages: Sequence[bytes], names: Sequence[str],
            stamps_ns: IntArray, channels: Sequence[Array]) -> list[bool]:
        """Take joint states of the same joints, and flag the accepted messages.

        Parameters
        ----------
        topic : index of the topic in the bag.
        messages : k serialised messages, in the order of their arrival.
        channels : position, velocity and effort, ``(k, n)`` each; velocity and effort may be empty.
        """
        position, velocity, effort = channels
        samples, counted = self.assembler.samples, self.assembler.messages
        try:
            self._check(tuple(names), stamps_ns, position, effort)
            taken = self.assembler.add_joint_states(names, stamps_ns, position, velocity, effort)
        except RecordingError as error:
            if len(messages) == 1:
                return [self._refuse(error)]
            self.assembler.messages = counted
            return [
                self.add_joint_state(topic, message, names, int(stamps_ns[row]), [values[row] for values in channels])
                for row, message in enumerate(messages)]
        for message, stamp_ns in zip(messages, stamps_ns.tolist(), strict=True):
            if taken:  # else the messages lack the wanted joints, like messages of a gripper
                self._write(topic, stamp_ns, message)
            if self.assembler.samples > samples:
                self._count_accepted(stamp_ns)
        return [True] * len(messages)

    def add(self, topic: int, data: bytes, stamp_ns: int, channels: Mapping[str, Array]) -> bool:
        """Take a message with values of further channels (see :meth:`.RecordingAssembler.add`); False if rejected.

        A message without channels is only written to the bag.
        """

        try:
            for channel, values in channels.items():
                if not np.isfinite(values).all():
                    raise RecordingError(f"{self.name}: {channel} is not finite; check its publisher")
            for channel, values in channels.items():
                self.assembler.add(channel, stamp_ns, values)
            self._write(topic, stamp_ns, data)
        except RecordingError as error:
            return self._refuse(error)
        return True

    def add_commands(self, topic: int, data: bytes, joints: Sequence[str], stamp_ns: int,
            values: Mapping[str, Array]) -> bool:
        """Take a message with commands (see :meth:`.RecordingAssembler.add_commands`); False if rejected."""
        try:
            self.assembler.add_commands(joints, stamp_ns, values)
            self._write(topic, stamp_ns, data)
        except RecordingError as error:
            return self._refuse(error)
        return True

    def reject(self, reason: str) -> None:
        """Count a message that could not be read."""
        self.last_error = reason
        self.counts.rejected += 1

    def take(self, final: bool = False) -> tuple[Block, Mask] | None:
        """Return the complete samples, and flags of samples that follow a gap; None before the first joint state."""
        block = self.assembler.take(final)
        if block is None:
            return None
        gaps = np.isin(block.stamps_ns, np.array(self._gap_stamps, dtype=np.int64))
        if len(block):
            self._gap_stamps = [stamp for stamp in self._gap_stamps if stamp > int(block.stamps_ns[-1])]
        return block, gaps

    def _check(self, names: tuple[str, ...], stamps_ns: IntArray, position: Array, effort: Array) -> None:
        if (stamps_ns <= 0).any():
            raise RecordingError(
                f"{self.name}: header.stamp is {stamps_ns.min()} ns; let the publisher stamp joint states, or use the"
                " times of arrival (stamps: arrival for the recorder, prepare.stamps: arrival for its bags)")
        if not np.isfinite(position).all():
            raise RecordingError(f"{self.name}: position is not finite; check the driver")
        if effort.shape[1] != len(names):
            return  # the assembler raises
        # Joints without an effort interface report NaN from the start.
        silent = self._silent.setdefault(names, np.isnan(effort[0]))
        if not np.isfinite(effort[:, ~silent]).all():
            raise RecordingError(f"{self.name}: effort is not finite; check the driver")

    def _refuse(self, error: RecordingError) -> bool:
        """Count a message that was not taken, and return False."""
        if isinstance(error, StampOrderError):
            self.last_error = str(error)
            self.counts.out_of_order += 1
        else:
            self.reject(str(error))
        return False

    def _write(self, topic: int, stamp_ns: int, data: bytes) -> None:
        """Write a message; its time of recording never goes back, as readers require, even if stamps of topics do."""
        if self.bag is None:
            return
        self._written_ns = max(self._written_ns, stamp_ns)
        while self._prelude:
            self.bag.write(self._prelude[0][0], self._written_ns, self._prelude.pop(0)[1])
        self.bag.write(topic, self._written_ns, data)

    def _count_accepted(self, stamp_ns: int) -> None:
        if not self.counts.accepted:
            self._first_ns = self._last_ns = stamp_ns
        elif stamp_ns > self._last_ns:
            step = stamp_ns - self._last_ns
            longest, steps = step / self._max_gap_periods, self._steps
            # Compare with the least step first: sorting takes longer, and NumPy's median takes longer than all other
            # work here.
            if len(steps) >= _MIN_GAP_STEPS and longest > min(steps) and longest > sorted(steps)[len(steps) // 2]:
                self.counts.gaps += 1
                self._gap_stamps.append(stamp_ns)
            else:
                steps.append(step)
            self._last_ns = stamp_ns
        self.counts.accepted += 1
