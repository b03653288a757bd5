"""A flow as an executable: its errors become one line and an exit status."""

import sys
from collections.abc import Callable
from typing import Protocol, TypeVar

from inertid_ros.core.errors import InertidError
from inertid_ros.ros.parameters import declare

from .client import FlowClient, Interrupted

DONE, FAILED, REJECTED, INTERRUPTED = 0, 2, 3, 130
"""Exit statuses of flows."""

T = TypeVar("T")


class Flow(Protocol):
    """Steps in order, each of which raises FlowError with one line that names the remedy."""

    def run(self) -> int:
        """Run all of them and return the exit status."""
        ...


def run_flow(name: str, options: type[T], flow: Callable[[FlowClient, T], Flow]) -> int:
    """Run the flow of that name, with the parameters that its node has, and return the exit status."""
    try:
        with FlowClient(name, lease_topic="excitation/lease") as client:
            try:
                return flow(client, declare(client.node, options)).run()
            except Interrupted:
                client.show_error("interrupted; the robot is at rest")
                return INTERRUPTED
            except InertidError as error:
                client.show_error(str(error))
                return FAILED
    except InertidError as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
