"""A ROS domain for a benchmark and the nodes that it starts."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from inertid_ros.nodes.tools.processes import claim_domain


@contextmanager
def own_domain() -> Iterator[None]:
    """Claim a ROS domain, and set it in the environment of this process and of those that it starts."""
    with claim_domain() as domain:
        os.environ.update(ROS_DOMAIN_ID=str(domain), ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST")
        yield
