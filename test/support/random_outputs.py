"""Random folders and commands that write into them with ``--force``: whatever the package did not write stays."""

import contextlib
import io
import os
import random
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from support.recordings.synthetic_calibration import synthetic_case

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.cli import convert, excite, identify, init, main as cli, payload, perturb
from inertid_ros.core.outputs import MANIFEST
from inertid_ros.data.files.bag_backends import write_bag
from inertid_ros.data.files.loading import write_npz
from inertid_ros.report.results import Result

RECORDING_FILES = (".npz", ".mcap", ".db3")
WRITTEN = {"identify": "result", "excite": "motion", "convert": "recording"}  # of the directories that commands write
# What each command does with its input, which a refused output has to come before.
WORK = {
    "identify": (identify, "load_model"), "excite": (excite, "load_model"), "convert": (convert, "load_recording"),
    "report": (Result, "load"), "perturb": (perturb, "load_model"), "init": (init, "robot_setup"),
    "payload": (Result, "load"),
}  # fmt: skip
NAMES = ("a", "b", "c.npz", "d.mcap", "e.db3", "f.html", "g.yaml", "h.urdf", "run_2026.01", "i j")


class Templates:
    """Outputs and inputs of a small robot, to be copied into random folders."""

    def __init__(self, folder: Path) -> None:
        case = synthetic_case(3, joints=2, duration=6.0)
        self.folder = folder
        self.outcome = calibrate(case.given, case.recordings[:1], case.recordings[1:])
        self.outcome.save(folder / "result")
        write_bag(case.recordings[0], folder / "recording")
        write_npz(case.recordings[1], folder / "run.npz")
        (folder / "robot.urdf").write_text(case.given.urdf)
        (folder / "settings.yaml").write_text("prepare: {cutoff_hz: 6}\n")
        quick = [f"excitation.{key}" for key in ("starts=4", "improved=0", "duration_s=10", "mounting=none")]
        settings = [word for setting in quick for word in ("--set", setting)]
        arguments = ["--urdf", str(folder / "robot.urdf"), "--output", str(folder / "motion"), *settings]
        assert run("excite", arguments).status == 0


@dataclass(frozen=True)
class Run:
    """Exit status and what a command printed on stderr."""

    status: int
    error: str


def run(command: str, arguments: list[str]) -> Run:
    """Run a command in this process."""
    error = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(error):
        try:
            status = cli.main([command, *arguments, "--quiet"])
        except SystemExit as ended:
            status = int(ended.code or 0)
    return Run(status, error.getvalue())


@dataclass
class Tree:
    """A random folder, and what in it is known to be the package's own.

    Attributes
    ----------
    own : dict of Path to str
        Directories that hold an output and nothing else, and the kind of each.
    spoilt : dict of Path to str
        Directories that hold an output and something else.
    paths : list of Path
        All that was made at the top.
    """

    root: Path
    own: dict[Path, str] = field(default_factory=dict)
    spoilt: dict[Path, str] = field(default_factory=dict)
    paths: list[Path] = field(default_factory=list)
    urdfs: list[Path] = field(default_factory=list)
    recordings: list[Path] = field(default_factory=list)
    results: list[Path] = field(default_factory=list)
    plans: list[Path] = field(default_factory=list)

    def add_output(self, source: Path, path: Path, kind: str) -> None:
        """Copy an output, which commands may read as well."""
        shutil.copytree(source / kind, path)
        self.own[path] = kind
        self.take_inputs(path, kind)

    def take_inputs(self, path: Path, kind: str) -> None:
        """Let commands read what a directory holds."""
        if kind == "result":
            self.results.append(path)
            self.urdfs.append(path / "calibrated.urdf")
        elif kind == "motion":
            self.plans.append(path / "plan.yaml")
        else:
            self.recordings.append(path)


def random_tree(templates: Templates, root: Path, rng: random.Random) -> Tree:
    """A folder ``in`` with inputs, and up to nine others of any sort."""
    tree = Tree(root)
    source = templates.folder
    (root / "in").mkdir()
    for kind in ("result", "motion", "recording"):
        tree.add_output(source, root / "in" / kind, kind)
    for name in ("robot.urdf", "run.npz", "settings.yaml"):
        shutil.copy(source / name, root / "in" / name)
    tree.urdfs.append(root / "in" / "robot.urdf")
    tree.recordings.append(root / "in" / "run.npz")
    for name in rng.sample(NAMES, rng.randint(3, 9)):
        path = root / name
        rng.choice(_PLACED)(templates, tree, path, rng)
        tree.paths.append(path)
    return tree


def _output(templates: Templates, tree: Tree, path: Path, rng: random.Random) -> None:
    tree.add_output(templates.folder, path, rng.choice(("result", "motion", "recording")))


def _spoilt_output(templates: Templates, tree: Tree, path: Path, rng: random.Random) -> None:
    """An output with something else in it; recordings and URDF beside a result, as of somebody who works there."""
    kind = rng.choice(("result", "motion", "recording"))
    shutil.copytree(templates.folder / kind, path)
    tree.spoilt[path] = kind
    name = rng.choice([file for file in sorted(os.listdir(path)) if file != MANIFEST])
    spoil = rng.randrange(8)
    if spoil == 0:
        shutil.copy(templates.folder / "run.npz", path / "run.npz")
        shutil.copy(templates.folder / "robot.urdf", path / "robot.urdf")
        tree.recordings.append(path / "run.npz")
        tree.urdfs.append(path / "robot.urdf")
    elif spoil == 1:
        (path / "notes.txt").write_text("years of work")
    elif spoil == 2:
        (path / "photos").mkdir()
        (path / "photos" / "cat.jpg").write_bytes(b"cat")
    elif spoil == 3:
        (path / name).write_bytes((path / name).read_bytes() + b"\nchanged by hand")
    elif spoil == 4:  # of a version before manifests
        (path / MANIFEST).unlink()
    elif spoil == 5:
        (path / name).unlink()
        (path / name).symlink_to(templates.folder / kind / name)
    elif spoil == 6:
        (path / name).unlink()
        os.mkfifo(path / name)
    else:
        (path / ".hidden").symlink_to("nowhere")


def _regular(templates: Templates, tree: Tree, path: Path, rng: random.Random) -> None:
    if rng.random() < 0.5:
        path.write_text("foreign")
    elif rng.random() < 0.5:
        shutil.copy(templates.folder / "run.npz", path)
        tree.recordings.append(path)
    else:
        shutil.copy(templates.folder / "robot.urdf", path)
        tree.urdfs.append(path)


def _directory(_templates: Templates, _tree: Tree, path: Path, rng: random.Random) -> None:
    path.mkdir()
    names = (
        (), ("metadata.yaml", "cat.jpg"), ("parameters.yaml", "report.json", "thesis.txt"), (MANIFEST, "thesis.txt"),
        ("plan.yaml", "excitation.json", "notes.txt"),
    )  # fmt: skip
    for name in rng.choice(names):
        (path / name).write_text("foreign")


def _link(_templates: Templates, tree: Tree, path: Path, rng: random.Random) -> None:
    path.symlink_to(rng.choice((*tree.paths, *tree.own, Path("nowhere"), Path("."), Path("/dev/null"), path)))


def _special(_templates: Templates, _tree: Tree, path: Path, rng: random.Random) -> None:
    choice = rng.randrange(3)
    if choice == 0 and os.geteuid() == 0:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    elif choice == 1:
        with socket.socket(socket.AF_UNIX) as end:
            end.bind(str(path))
    else:
        os.mkfifo(path)


_Place = Callable[[Templates, Tree, Path, random.Random], None]
_PLACED: tuple[_Place, ...] = (_output, _output, _output, _spoilt_output, _regular, _directory, _link, _special)


def random_target(tree: Tree, rng: random.Random) -> str:
    """A path to write to: one that is there, one in it, or neither."""
    one = rng.choice((*tree.paths, *tree.urdfs, *tree.recordings))
    outputs = (*tree.own, *tree.spoilt, *tree.spoilt)
    chosen = rng.random()
    if chosen < 0.4:
        path = rng.choice(outputs)
    elif chosen < 0.72:
        path = one
    elif chosen < 0.82:
        path = one / rng.choice((*NAMES, "report.html", "plan.yaml", "new/deep"))
    elif chosen < 0.88:
        path = tree.root / rng.choice(("new", "new/deep/out", "new.npz", "new.mcap"))
    elif chosen < 0.94:
        path = tree.root / rng.choice((".", "in", "in/..", "in/."))
    else:
        path = tree.root / ("x" * rng.choice((255, 256, 5000)))
    return os.path.relpath(path) if rng.random() < 0.5 else str(path)


def random_command(tree: Tree, target: str, rng: random.Random) -> tuple[str, list[str], list[Path]]:
    """Command, mostly one that writes what is there, arguments without ``--force``, and its inputs."""
    command = rng.choice(tuple(WORK))
    kind = (tree.own | tree.spoilt).get(Path(os.path.realpath(target)))
    if kind and rng.random() < 0.7:
        command = next(name for name, made in WRITTEN.items() if made == kind)
    urdf, recording, result = rng.choice(tree.urdfs), rng.choice(tree.recordings), rng.choice(tree.results)
    settings = tree.root / "in" / "settings.yaml"
    inputs: dict[str, tuple[list[object], list[Path]]] = {
        "identify": ([recording, "--urdf", urdf, "--output", target], [recording, urdf]),
        "convert": ([recording, target], [recording]),
        "report": ([result, "--html", target], [result]),
        "perturb": ([urdf, "--output", target], [urdf]),
        "init": ([urdf, "--output", target], [urdf]),
        "payload": ([result, recording, "--output", target], [result, recording]),
    }
    plan = rng.choice(tree.plans)
    inputs["excite"] = (["--urdf", urdf, "--check", plan, "--output", target], [urdf, plan])
    arguments, read = inputs[command]
    if command == "identify" and rng.random() < 0.3:
        more, option = rng.choice(((result, "--prior"), (settings, "--config")))
        arguments, read = [*arguments, option, more], [*read, more]
    if command == "init" and rng.random() < 0.5:
        arguments, read = [*arguments, "--recording", recording], [*read, recording]
    if command == "report" and rng.random() < 0.3:
        other = rng.choice(tree.results)
        arguments, read = ["--compare", result, other, "--html", target], [result, other]
    return command, [str(word) for word in arguments], read


def snapshot(root: Path) -> dict[str, tuple[object, ...]]:
    """Type, mode, and content of all that is in a folder; links are not followed."""
    content: dict[str, tuple[object, ...]] = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            status = os.lstat(path)
            what: object = status.st_rdev
            if stat.S_ISREG(status.st_mode):
                what = Path(path).read_bytes()
            elif stat.S_ISLNK(status.st_mode):
                what = os.readlink(path)
            content[os.path.relpath(path, root)] = (status.st_mode, what)
    return content


@contextlib.contextmanager
def _stubs(templates: Templates, command: str) -> Iterator[list[str]]:
    """Long work is replaced; the calls of what opens an input are noted."""
    calls: list[str] = []
    module, name = WORK[command]
    opened = getattr(module, name)

    def noted(*arguments: object, **keywords: object) -> object:
        calls.append(name)
        return opened(*arguments, **keywords)

    with contextlib.ExitStack() as stack:
        stack.enter_context(patch.object(module, name, noted))
        stack.enter_context(patch.object(identify, "calibrate", lambda *_: templates.outcome))
        stack.enter_context(patch.object(identify, "print_report", lambda *_: None))
        identified = type("Outcome", (), {"notices": (), "content": {"mass": 1.0}})
        stack.enter_context(patch.object(payload, "payload_offline", lambda *_: identified))
        stack.enter_context(patch.object(payload, "_print", lambda *_: None))
        yield calls


@dataclass(frozen=True)
class Draw:
    """What became of one folder and command.

    Attributes
    ----------
    outcome : str
        "written", "replaced" or "refused".
    violations : list of str
        Everything that is not as it must be.
    """

    command: str
    outcome: str
    violations: list[str]


def draw(templates: Templates, seed: int) -> Draw:
    """Make a folder and run a command; see what has changed."""
    rng = random.Random(seed)
    here = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="io") as name:
        root = Path(name)
        os.chdir(root)
        try:
            tree = random_tree(templates, root, rng)
            if rng.random() < 0.2:
                os.chdir(rng.choice((*tree.own, root / "in")))
            target = random_target(tree, rng) if rng.random() < 0.95 else "."
            command, arguments, inputs = random_command(tree, target, rng)
            force = rng.random() < 0.9
            expected = _expected(tree, command, target, inputs, force)
            before = snapshot(root)
            with _stubs(templates, command) as calls:
                done = run(command, [*arguments, *(["--force"] if force else [])])
            after = snapshot(root)
        finally:
            os.chdir(here)
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    line = f"seed {seed}: {command} {' '.join(arguments)}: {done.error.strip() or done.status}"
    violations = [f"{line}: {path} changed" for path in changed if not expected.permits(root / path)]
    if done.status not in (0, 2):
        violations.append(f"{line}: status {done.status}")
    if done.status == 2 and (changed or done.error.count("\n") != 1):
        violations.append(f"{line}: refused, yet changed, or not in one line")
    if done.status == 2 and calls:
        violations.append(f"{line}: refused after work had begun")
    if (done.status == 0) != expected.written:
        violations.append(f"{line}: should {'' if expected.written else 'not '}have been written")
    replaced = expected.target_exists and done.status == 0
    return Draw(command, "replaced" if replaced else "written" if done.status == 0 else "refused", violations)


@dataclass(frozen=True)
class _Expected:
    """Whether the output must be written, and where; found without a look at manifests."""

    target: Path
    target_exists: bool
    written: bool

    def permits(self, path: Path) -> bool:
        """Whether this path may change: the output, or a directory above it that is made."""
        if not self.written:
            return False
        return path == self.target or self.target in path.parents or (path in self.target.parents and path != Path("/"))


def _expected(tree: Tree, command: str, target: str, inputs: list[Path], force: bool) -> _Expected:
    path = Path(target)
    folder = os.path.realpath(path.parent if path.name not in ("", "..") else path)
    real = Path(folder) / path.name if path.name not in ("", "..") else Path(folder)
    exists = os.path.lexists(real)
    real_inputs = [Path(os.path.realpath(each)) for each in inputs]
    read = any(real == each or real in each.parents or each in real.parents for each in real_inputs)
    makes_directory = command in ("identify", "excite") or (command == "convert" and real.suffix not in RECORDING_FILES)
    fits = all(len(part.encode()) <= (248 if command == "convert" and makes_directory else 255) for part in real.parts)
    above = next((parent for parent in (real, *real.parents)[1:] if os.path.lexists(parent)), Path("/"))
    fits = fits and len(os.fsencode(real)) < 4096 and above.is_dir()
    fits = fits and not any(parent.is_symlink() and not parent.exists() for parent in path.absolute().parents)
    if command == "convert" and real.suffix in (".yaml",):
        return _Expected(real, exists, False)
    if not exists:
        return _Expected(real, False, fits)
    if real.is_symlink():
        return _Expected(real, True, False)
    if not makes_directory:
        return _Expected(real, True, real.is_file() and force and not read)
    if not real.is_dir() or real in (Path.cwd(), *Path.cwd().parents):
        return _Expected(real, True, False)
    empty = not any(real.iterdir())
    return _Expected(real, True, empty or (tree.own.get(real) == WRITTEN[command] and force and not read))
