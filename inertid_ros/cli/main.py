"""The ``inertid`` command.

Only the command that runs is imported, so that help and usage errors appear at once.
"""

import argparse
import importlib
import math
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from inertid_ros import __version__
from inertid_ros.core.blas_threads import check_address_space
from inertid_ros.core.errors import InertidError

from .stopping import BAD_INPUT, BROKEN, DONE, StoppedError, stoppable

_MIN_ADDRESS_SPACE_MIB = 600  # for libraries, and the buffers of OpenBLAS
_Number = TypeVar("_Number", int, float)
_LIST: dict[str, Any] = {"action": "append", "default": []}  # an option that may be given several times
_RECORDING = ".npz file, rosbag2 directory, or .mcap or .db3 file"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status.

    0 done, with a warning on stderr if the result is to be used with care; 2 bad usage or input, with one line on
    stderr; 3 the result must not be used; 1 a fault of this package; 130 interrupted, 143 terminated.
    """
    for name, value in (("OMP_NUM_THREADS", "1"), ("OPENBLAS_NUM_THREADS", "1")):
        os.environ.setdefault(name, value)  # the matrices are small: threads cost more than they gain
    options = _parser().parse_args(arguments)
    options.command_line = shlex.join(["inertid", *(sys.argv[1:] if arguments is None else arguments)])
    try:
        with stoppable():
            check_address_space("a command", _MIN_ADDRESS_SPACE_MIB)
            from .settings import set_up_logging  # with it comes what help and usage errors need not wait for

            set_up_logging(options)
            command = importlib.import_module(f"{__package__}.{options.command}")
            status: int = command.run(options)
            sys.stdout.flush()
        return status
    except InertidError as error:
        return _fail(str(error), BAD_INPUT)
    except StoppedError as stopped:
        return _fail(*stopped.args)
    except BrokenPipeError:
        # The reader of our output is gone; what remains in the buffer must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except MemoryError:
        return _fail("out of memory; raise the limit (ulimit -v), or use fewer or shorter recordings", BAD_INPUT)
    except Exception as error:
        if options.debug:
            raise
        reason = " ".join(f"{error.__class__.__name__}: {error}".split())
        return _fail(f"unexpected {reason}; run again with --debug and report it", BROKEN)


class _Parser(argparse.ArgumentParser):
    """Usage errors in one line, like every other error."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"inertid: error: {' '.join(message.split())}; see {self.prog} --help\n")
        sys.exit(BAD_INPUT)


def _parser() -> argparse.ArgumentParser:
    common = _Parser(add_help=False)
    common.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    common.add_argument("-q", "--quiet", action="store_true", help="no notices and no progress on stderr")
    common.add_argument("--debug", action="store_true", help="show where an unexpected error comes from")
    settings = _Parser(add_help=False)
    settings.add_argument("--config", metavar="FILE", help="YAML configuration, plain or a ROS parameter file")
    settings.add_argument("--set", metavar="KEY=VALUE", **_LIST, help="one value, such as prepare.cutoff_hz=5")
    settings.add_argument("--lock", metavar="JOINT=POSITION", **_LIST, help="hold a joint still [rad or m]")
    force = _Parser(add_help=False)
    force.add_argument("--force", action="store_true", help="replace an earlier output, or the file that is there")

    parser = _Parser(prog="inertid", description="Dynamic calibration of robots: inertia and friction from motion.")
    parser.add_argument("--version", action="version", version=f"inertid {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)

    def add(name: str, summary: str, *parents: _Parser) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=summary, description=summary + ".", parents=[*parents, common])

    init = add("init", "look at a robot and write its configuration, to be corrected", force)
    init.add_argument("urdf", metavar="URDF", help="robot description, or a .xacro file with --xacro")
    init.add_argument(
        "--xacro", nargs="*", metavar="NAME:=VALUE", default=None,
        help="expand xacro with these arguments; it evaluates expressions of the file, so only of files that you trust",
    )  # fmt: skip
    init.add_argument(
        "--effort", choices=("torque", "current", "without_gravity"), default="",
        help="what joint states report as effort (default that of the robot's driver, where it is known)",
    )  # fmt: skip
    init.add_argument(
        "--mounting", choices=("floor", "wall", "ceiling", "none"), default="",
        help="what the robot is mounted on (default a floor, which is said)",
    )  # fmt: skip
    init.add_argument("--lock", metavar="JOINT=POSITION", **_LIST, help="hold a joint still [rad or m]")
    init.add_argument("--recording", metavar="RECORDING", help="whose names of joints are compared; " + _RECORDING)
    init.add_argument("--output", metavar="FILE", help="YAML to write (default the robot's name, here)")

    identify = add("identify", "find the parameters of a robot from recordings", settings, force)
    identify.add_argument("recordings", nargs="+", metavar="RECORDING", help=_RECORDING)
    identify.add_argument("--urdf", required=True, metavar="FILE", help="robot description, the prior")
    identify.add_argument("--validate", nargs="+", default=[], metavar="RECORDING", help="held-out recordings")
    identify.add_argument(
        "--model", choices=("force", "momentum", "momentum_change"),
        help="equations to fit: force, or momentum of a robot that floats, momentum_change where it is not zero",
    )  # fmt: skip
    identify.add_argument(
        "--prior", metavar="RESULT_DIR", help="result to continue: its recordings count as if they were fitted again"
    )
    identify.add_argument("--output", required=True, metavar="DIR", help="result directory to write")

    excite = add("excite", "plan an exciting motion within the robot's limits, or inspect a plan", settings, force)
    excite.add_argument("--urdf", required=True, metavar="FILE", help="robot description")
    excite.add_argument(
        "--prior", metavar="RESULT_DIR", help="result to add to: the motion excites what its recordings left open"
    )
    planned = excite.add_mutually_exclusive_group()
    planned.add_argument(
        "--start", metavar="JOINT=POSITION", **_LIST,
        help="pose at both ends [rad or m]; other joints are in the middle of their range",
    )  # fmt: skip
    planned.add_argument(
        "--check", metavar="PLAN", help="a plan.yaml or JointTrajectory in YAML to check and show instead of planning"
    )
    excite.add_argument("--output", metavar="DIR", help="directory to write: plan.yaml, page and plots")

    validate = add("validate", "validate a result or a URDF on recordings", settings)
    validate.add_argument("subject", metavar="RESULT_DIR|URDF")
    validate.add_argument("recordings", nargs="+", metavar="RECORDING", help=_RECORDING)
    validate.add_argument("--urdf", metavar="FILE", help="to compare with; a result holds its own")

    payload = add("payload", "identify what a calibrated robot holds", settings, force)
    payload.add_argument("result", metavar="RESULT_DIR", help="result of the robot without the payload")
    payload.add_argument("recordings", nargs="+", metavar="RECORDING", help="with the payload; " + _RECORDING)
    payload.add_argument(
        "--frame", default="", metavar="LINK", help="link in whose frame it is expressed (default the last moving one)"
    )
    payload.add_argument(
        "--reference", nargs="+", default=[], metavar="RECORDING", help="of the same session without the payload"
    )
    payload.add_argument(
        "--drift", type=_number(0.0, 10.0), default=0.1, metavar="SHARE",
        help="by how much friction may have changed since the calibration (default 0.1)",
    )  # fmt: skip
    payload.add_argument(
        "--reference-drift", type=_number(0.0, 10.0), metavar="SHARE",
        help="by how much between the reference and the others (default 0.03)",
    )  # fmt: skip
    payload.add_argument(
        "--max-mass", type=_mass, default=math.inf, metavar="KG", help="refuse a payload that is heavier"
    )
    payload.add_argument("--output", metavar="FILE", help="payload.json to write")

    fleet = add("fleet", "many robots with many bags: parameters, drift, and which robots differ", settings)
    fleet.add_argument("catalogue", metavar="CATALOGUE", help="YAML or Parquet file with robots, bags and payloads")
    fleet.add_argument(
        "--output", required=True, metavar="DIR",
        help="folder of results; what it has of an earlier run is not computed again",
    )  # fmt: skip
    workers = fleet.add_mutually_exclusive_group()
    workers.add_argument(
        "--scheduler", default="", metavar="ADDRESS", help="of a Dask cluster (default processes on this machine)"
    )
    workers.add_argument(
        "--workers", type=_number(1, 10_000), default=0, metavar="N",
        help="worker processes on this machine (default one per core)",
    )  # fmt: skip

    convert = add("convert", "convert a recording", settings, force)
    convert.add_argument("input", metavar="IN", help=_RECORDING)
    convert.add_argument("output", metavar="OUT", help="NAME.npz, NAME.mcap or NAME.db3; else a bag directory")
    convert.add_argument("--storage", choices=("mcap", "sqlite3"), help="of a bag directory (default mcap)")

    info = add("info", "describe a recording, a URDF or a result directory", settings)
    info.add_argument("subject", metavar="RECORDING|URDF|RESULT_DIR")

    report = add("report", "print a result directory as tables, or write its page", force)
    report.add_argument("directory", metavar="RESULT_DIR", nargs="?")
    report.add_argument("--html", metavar="FILE", help="write the report as one HTML page")
    report.add_argument(
        "--compare", nargs=2, metavar=("RESULT_A", "RESULT_B"), help="what differs between two results of one robot"
    )

    perturb = add("perturb", "perturb a URDF by point masses, to try calibration in simulation", settings, force)
    perturb.add_argument("urdf", metavar="URDF")
    perturb.add_argument("--seed", type=int, default=0, help="of the random generator (default 0)")
    perturb.add_argument("--output", required=True, metavar="FILE", help="URDF to write")
    perturb.add_argument("--mass-uncertainty", type=float, metavar="SHARE", help="largest change of a body's mass")
    return parser


def _number(low: _Number, high: _Number) -> Callable[[str], _Number]:
    """Converter of a number within bounds, which are of its type."""

    def number(text: str) -> _Number:
        value = type(low)(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text} is not between {low:g} and {high:g}")
        return value

    return number


def _mass(text: str) -> float:
    value = float(text)
    if not value > 0.0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def _fail(message: str, status: int) -> int:
    sys.stderr.write(f"inertid: error: {' '.join(message.split())}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
