"""The ``inertid`` command.

Only the command that runs is imported, so that help and usage errors appear at once.
"""

import argparse
import difflib
import importlib
import math
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, NoReturn, TypeVar

from inertid_ros import __version__
from inertid_ros.core.errors import InertidError, check_address_space, one_line, path_error

from .stopping import BAD_INPUT, BROKEN, DONE, StoppedError, stoppable

_MIN_ADDRESS_SPACE_MIB = 600  # for libraries, and the buffers of OpenBLAS
_Number = TypeVar("_Number", int, float)
_LIST: dict[str, Any] = {"action": "append", "default": []}  # an option that may be given several times
EXAMPLES = {
    "init": ("inertid init robot.urdf", "inertid init ur5e.urdf.xacro --xacro name:=ur5e ur_type:=ur5e",
        "inertid init robot.urdf --lock finger_joint=0.02 --mounting ceiling"),
    "identify": ("inertid identify run1_bag --urdf robot.urdf --validate run2_bag --output result",
        "inertid identify *.csv --urdf robot.urdf --config robot.yaml --output result",
        "inertid identify new_bag --urdf robot.urdf --prior result --output result2"),
    "excite": ("inertid excite --urdf robot.urdf --config robot.yaml --output plan",
        "inertid excite --urdf robot.urdf --check plan/plan.yaml"),
    "validate": ("inertid validate result run3_bag", "inertid validate robot.urdf run1_bag"),
    "predict": ("inertid predict result run3_bag --table torque.csv",
        "inertid predict result plan/plan.yaml --fill feed_forward.yaml"),
    "export": ("inertid export result --to mjcf --output arm.xml",
        "inertid export result --samples 1000 --output samples.csv"),
    "payload": ("inertid payload result box_bag --frame tool0 --output payload.json",),
    "force-sensor": ("inertid force-sensor sensor_bag --urdf robot.urdf --frame tool0 --output sensor.yaml",),
    "fleet": ("inertid fleet catalogue.yaml --output fleet",),
    "convert": ("inertid convert run1_bag run1.csv", "inertid convert log.csv run1_bag"),
    "info": ("inertid info run1_bag", "inertid info robot.urdf", "inertid info result", "inertid info plan/plan.yaml"),
    "report": ("inertid report result", "inertid report --compare result other_result"),
    "demo": ("inertid demo", "inertid demo --output my_demo"),
    "perturb": ("inertid perturb robot.urdf --output wrong.urdf",)}
_FIRST_STEPS = """first steps:
  inertid demo                                                              all of this on a simulated arm
  inertid info run1_bag                                                     what is recorded
  inertid identify run1_bag --urdf robot.urdf --validate run2_bag --output result
  inertid report result                                                     errors, links, verdict

`inertid COMMAND --help` shows options and examples; docs/guides/first_result.md explains each step."""
_RECORDING = "rosbag2 directory, .mcap, .db3, .npz, .csv, .parquet or .mat file, or LeRobot data set"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status.

    0 done, with a warning on stderr if the result is to be used with care; 2 bad usage or input, with one line on
    stderr; 3 the result must not be used; 1 a fault of this package; 130 interrupted, 143 terminated.
    """
    for name, value in (("OMP_NUM_THREADS", "1"), ("OPENBLAS_NUM_THREADS", "1")):
        os.environ.setdefault(name, value)  # the matrices are small: threads cost more than they gain
    parser = command_parser()
    if "_ARGCOMPLETE" in os.environ:  # the shell asks for completions
        import argcomplete

        argcomplete.autocomplete(parser)
    options = parser.parse_args(arguments)
    status = DONE
    options.command_line = shlex.join(["inertid", *(sys.argv[1:] if arguments is None else arguments)])
    try:
        with stoppable():
            check_address_space("a command", _MIN_ADDRESS_SPACE_MIB)
            # Imported late, so that help and usage errors do not wait for these imports.
            from .printing import PrintableStream
            from .settings import set_up_logging

            warnings.simplefilter("default" if options.debug else "ignore")  # NumPy's, about numbers in damaged files
            with redirect_stdout(PrintableStream(sys.stdout)), redirect_stderr(PrintableStream(sys.stderr)):
                set_up_logging(options)
                module = options.command.replace("-", "_")
                command = importlib.import_module(f"{__package__}.{module}")
                status = command.run(options)
                sys.stdout.flush()
        return status
    except InertidError as error:
        return _fail(str(error), BAD_INPUT)
    except StoppedError as stopped:
        return _fail(*stopped.args)
    except BrokenPipeError:
        from .printing import leave_stdout

        leave_stdout()
        return status
    except OSError as error:
        if options.debug:
            raise
        return _fail(path_error(error), BAD_INPUT)
    except MemoryError:
        return _fail("out of memory; raise the limit (ulimit -v), or use fewer or shorter recordings", BAD_INPUT)
    except Exception as error:
        if options.debug:
            raise
        return _fail(f"unexpected {error.__class__.__name__}: {error}; run again with --debug and report it", BROKEN)


class _Parser(argparse.ArgumentParser):
    """Parser that prints a usage error in one line, like all other errors."""

    def error(self, message: str) -> NoReturn:
        if wrong := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
            close = difflib.get_close_matches(wrong[1], re.findall(r"[\w-]+", wrong[2]), n=1)
            message += f"; did you mean {close[0]}?" if close else ""
        sys.stderr.write(f"inertid: error: {one_line(message)}; see {self.prog} --help\n")
        sys.exit(BAD_INPUT)


def command_parser() -> argparse.ArgumentParser:
    """Parser of all commands and their options."""
    common = _Parser(add_help=False)
    common.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    common.add_argument("-q", "--quiet", action="store_true", help="print neither notices, warnings nor progress")
    common.add_argument("--debug", action="store_true", help="print the traceback of an unexpected error")
    settings = _Parser(add_help=False)
    _take(settings, "--config", "FILE", "YAML configuration, plain or a ROS parameter file")
    _take(settings, "--set", "KEY=VALUE", "set one option, such as prepare.cutoff_hz=5", **_LIST)
    _take(settings, "--lock", "JOINT=POSITION", "hold a joint still [rad or m]", **_LIST)
    force = _Parser(add_help=False)
    force.add_argument("--force", action="store_true", help="replace an earlier output or an existing file")

    parser = _Parser(prog="inertid", description="Dynamic calibration of robots: inertia and friction from motion.",
        epilog=_FIRST_STEPS, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"inertid {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)

    def add(name: str, summary: str, *parents: _Parser) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=summary, description=summary + ".", parents=[*parents, common],
            epilog="examples:\n  " + "\n  ".join(EXAMPLES[name]), formatter_class=argparse.RawDescriptionHelpFormatter)

    init = add("init", "write a first configuration for a robot, to be reviewed and corrected", force)
    _take(init, "urdf", "URDF", "robot description: URDF, MJCF, SDF, or a .xacro file with --xacro")
    _take(init, "--xacro", "NAME:=VALUE",
        "expand xacro with these arguments; this evaluates expressions in the file, so use only files that you trust",
        nargs="*")
    _take(init, "--effort", None,
        "quantity that joint states report as effort, or position_command if torque follows from commands (default:"
        " from the robot's driver, if it is known)",
        choices=("torque", "current", "gravity_compensated", "position_command"), default="")
    _take(init, "--mounting", None, "mounting of the robot (default: floor, stated as an assumption)",
        choices=("floor", "wall", "ceiling", "none"), default="")
    _take(init, "--lock", "JOINT=POSITION", "hold a joint still [rad or m]", **_LIST)
    _take(init, "--recording", "RECORDING", "recording to compare joint names with; " + _RECORDING)
    _take(init, "--output", "FILE", "YAML to write (default: named after the description, in this directory)")

    identify = add("identify", "find the parameters of a robot from recordings", settings, force)
    _take(identify, "recordings", "RECORDING", _RECORDING, nargs="+")
    _take(identify, "--urdf", "FILE", "URDF, MJCF or SDF of the robot; its parameters are the prior", required=True)
    _take(identify, "--validate", "RECORDING", "held-out recordings", nargs="+", default=[])
    _take(identify, "--model", None,
        "equations to fit: force; for a floating robot momentum, or momentum_change if its momentum is not zero",
        choices=("force", "momentum", "momentum_change"))
    _take(identify, "--prior", "RESULT_DIR|URDF", "one result to continue: its recordings count as if they were fitted"
        " again; or a URDF, or several results and URDFs of this type of robot, whose mean is the prior of the bodies",
        nargs="+")
    _take(identify, "--output", "DIR", "result directory to write", required=True)

    excite = add("excite", "plan an exciting motion within the robot's limits, or inspect a plan", settings, force)
    _take(excite, "--urdf", "FILE", "URDF, MJCF or SDF of the robot", required=True)
    _take(excite, "--prior", "RESULT_DIR", "earlier result; the motion excites parameters that are still uncertain")
    planned = excite.add_mutually_exclusive_group()
    _take(planned, "--start", "JOINT=POSITION",
        "pose at both ends [rad or m]; other joints start in the middle of their range", **_LIST)
    _take(planned, "--check", "PLAN", "a plan.yaml or JointTrajectory in YAML to check and show instead of planning")
    _take(excite, "--output", "DIR", "directory to write: plan.yaml, page and plots")

    validate = add("validate", "validate a result or a URDF on recordings", settings)
    _take(validate, "subject", "RESULT_DIR|URDF", "")
    _take(validate, "recordings", "RECORDING", _RECORDING, nargs="+")
    _take(validate, "--urdf", "FILE", "URDF to compare with (default for a result: its own prior)")

    predict = add("predict", "predict torque along a motion as feed-forward, or of a recording by cause", settings,
        force)
    _take(predict, "result", "RESULT_DIR", "")
    _take(predict, "motion", "MOTION|RECORDING", "a plan.yaml or JointTrajectory in YAML; or " + _RECORDING)
    _take(predict, "--table", "FILE",
        "CSV to write for a recording: measured and predicted torque over time, by bodies, rotors and friction")
    _take(predict, "--fill", "FILE", "JointTrajectory in YAML to write, with the torque in the effort of every point")

    export = add("export", "write a result for a simulator, as a table, or as samples for domain randomisation", force)
    _take(export, "result", "RESULT_DIR", "")
    written = export.add_mutually_exclusive_group(required=True)
    _take(written, "--to", None, "mjcf: MuJoCo; drake: URDF with rotor inertia; isaaclab: values of actuators; csv:"
        " parameters and their intervals", choices=("mjcf", "drake", "isaaclab", "csv"))
    _take(written, "--samples", "N", "consistent parameters drawn from their uncertainty", type=_number(1, 10_000))
    _take(export, "--onto", "FILE", "MJCF of the robot to update, with the joint names of the URDF", default="")
    _take(export, "--output", "FILE", "file to write; CSV for samples", required=True)

    payload = add("payload", "identify the payload of a calibrated robot", settings, force)
    _take(payload, "result", "RESULT_DIR", "result of the robot without the payload")
    _take(payload, "recordings", "RECORDING", "with the payload; " + _RECORDING, nargs="+")
    _take(payload, "--frame", "LINK", "frame of the payload's parameters (default: the last moving link)", default="")
    _take(payload, "--reference", "RECORDING", "same session without the payload", nargs="+", default=[])
    _take(payload, "--drift", "SHARE", "possible relative change of friction since the calibration (default 0.1)",
        type=_number(0.0, 10.0), default=0.1)
    _take(payload, "--reference-drift", "SHARE", "relative change from reference to payload recordings (default 0.03)",
        type=_number(0.0, 10.0))
    _take(payload, "--max-mass", "KG", "refuse a heavier payload", type=_mass, default=math.inf)
    _take(payload, "--output", "FILE", "payload.json to write")

    sensor = add("force-sensor", "identify the load and the bias of a force-torque sensor", settings, force)
    _take(sensor, "recordings", "RECORDING", "sensor turned far about two axes; " + _RECORDING, nargs="+")
    _take(sensor, "--sensor", "NAME", "wrench channel of the recording (default: the only wrench)", default="")
    _take(sensor, "--urdf", "FILE", "robot that carries the sensor (default: use the recorded pose, base_pose)")
    _take(sensor, "--frame", "FRAME", "frame of the URDF in which the wrench is expressed", default="")
    _take(sensor, "--output", "FILE", "YAML file to write, with parameters of controllers")

    fleet = add("fleet", "calibrate many robots from many bags: parameters, drift, outlying robots", settings)
    _take(fleet, "catalogue", "CATALOGUE", "YAML or Parquet file with robots, bags and payloads")
    _take(fleet, "--output", "DIR", "folder of results; results of an earlier run in it are not computed again",
        required=True)
    workers = fleet.add_mutually_exclusive_group()
    _take(workers, "--scheduler", "ADDRESS", "address of a Dask cluster (default local processes)", default="")
    _take(workers, "--workers", "N", "worker processes on this machine (default one per core)", type=_number(1, 10_000),
        default=0)

    convert = add("convert", "convert a recording", settings, force)
    _take(convert, "input", "IN", _RECORDING)
    _take(convert, "output", "OUT", "NAME.npz, .csv, .parquet, .mat, .mcap or .db3; else a bag directory")
    _take(convert, "--storage", None, "storage of a bag directory (default mcap)", choices=("mcap", "sqlite3"))

    info = add("info", "describe a recording, a URDF, a result directory or a plan", settings)
    _take(info, "subject", "RECORDING|URDF|RESULT_DIR|PLAN", "")

    report = add("report", "print a result directory as tables, or write its page", force)
    _take(report, "directory", "RESULT_DIR", "", nargs="?")
    _take(report, "--html", "FILE", "write the report as one HTML page")
    pair = ("RESULT_A", "RESULT_B")
    _take(report, "--compare", pair, "compare two results of one robot", nargs=2)

    demo = commands.add_parser("demo", help="simulate an arm with a wrong URDF, and calibrate it",
        description="Simulate an arm with a wrong URDF, and run the commands of docs/guides/first_result.md on it.",
        epilog="examples:\n  " + "\n  ".join(EXAMPLES["demo"]), formatter_class=argparse.RawDescriptionHelpFormatter)
    demo.set_defaults(json=False, quiet=False, debug=False)
    _take(demo, "--output", "DIR", "folder to write: URDFs, recordings, result (default: demo)", default="demo")

    perturb = add("perturb", "perturb a URDF by point masses, to try calibration in simulation", settings, force)
    _take(perturb, "urdf", "URDF", "")
    _take(perturb, "--seed", None, "seed of the random generator (default 0)", type=_number(0, 2**63 - 1), default=0)
    _take(perturb, "--output", "FILE", "URDF to write", required=True)
    _take(perturb, "--mass-uncertainty", "SHARE", "largest change of a body's mass", type=float)
    return parser


def _take(container: Any, name: str, metavar: str | tuple[str, ...] | None, about: str, **how: Any) -> None:
    """Add an argument to a parser or to an argument group."""
    container.add_argument(name, metavar=metavar, help=about or None, **how)


def _number(low: _Number, high: _Number) -> Callable[[str], _Number]:
    """Return a converter from text to a number within bounds, of the type of the bounds."""

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
    sys.stderr.write(f"inertid: error: {one_line(message)}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
