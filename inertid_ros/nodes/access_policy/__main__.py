"""Write the access control policy."""

import argparse
import sys
from pathlib import Path

from inertid_ros.core.errors import InertidError
from inertid_ros.core.outputs import write_file

from .policy_text import FILE, policy_text
from .running_nodes import used_by_nodes


def main() -> int:
    """Write the policy file into the folder given."""
    parser = argparse.ArgumentParser(
        description="write the SROS 2 policy of the nodes, as they are with the arguments after --ros-args"
    )
    parser.add_argument("folder", nargs="?", default="security", help="of the policy file")
    arguments = [*sys.argv[1:], "--ros-args"]
    index = arguments.index("--ros-args")
    own, of_ros = arguments[:index], arguments[index + 1 : -1]
    folder = Path(parser.parse_args(own).folder)
    try:
        text = policy_text(used_by_nodes(of_ros))
        write_file(folder / FILE, text.encode(), force=True)
    except (InertidError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
