"""A flow as an executable: its errors become one line and an exit status."""

import sys
from collections.abc import Callable
from typing import Protocol, TypeVar

from inertid_ros.core.errors import InertidError
from inertid_ros.nodes.spin import end_surely
from inertid_ros.ros.parameters import check_given_parameters, declare

from .client import FlowClient, Interrupted

DONE, FAILED, REJECTED, INTERRUPTED = 0, 2, 3, 130
"""Exit statuses of flows."""

T = TypeVar("T")


class Flow(Protocol):
    """Steps in order, each of which raises FlowError with one line that names the remedy."""

    def run(self) -> int:
        """Run all of them and return the exit status."""
        ...

    def leave(self) -> None:
        """After a failure or an interruption: leave nothing armed, recording or running."""
        ...

    @property
    def rest(self) -> str:
        """What is known of the robot once the flow was interrupted."""
        ...


def run_flow(name: str, options: type[T], flow: Callable[[FlowClient, T], Flow]) -> int:
    """Run the flow of that name, with the parameters that its node has, and return the exit status."""
    try:
        with FlowClient(name, lease_topic="excitation/lease") as client:
            status = FAILED
            try:
                given = declare(client.node, options)
                check_given_parameters(client.node)
                status = _run(client, flow(client, given))
            except InertidError as error:  # of the parameters
                client.show_error(str(error))
            end_surely(status)
            return status
    except InertidError as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED


def _run(client: FlowClient, flow: Flow) -> int:
    try:
        return flow.run()
    except (InertidError, Interrupted) as error:
        client.fail(error)
        if client.is_interrupted:
            client.show(f"interrupted; {flow.rest}")
        flow.leave()
        return INTERRUPTED if client.is_interrupted else FAILED
