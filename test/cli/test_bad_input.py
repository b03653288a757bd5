"""Bad input to the inertid command: one line that names file, field and remedy, status 2, nothing left behind."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml
from support.recordings.synthetic_calibration import synthetic_case

from inertid_ros.cli import main as cli
from inertid_ros.data.files.bag_backends import write_bag
from inertid_ros.data.files.loading import read_npz, write_npz

INERTID = (sys.executable, "-c", "import sys; from inertid_ros.cli.main import main; sys.exit(main(sys.argv[1:]))")
COMMANDS = ("identify", "excite", "validate", "convert", "info", "report", "perturb")


@pytest.fixture(scope="module")
def case():
    return synthetic_case(5, recordings=1, duration=5.0)


@pytest.fixture(scope="module")
def inputs(case, tmp_path_factory):
    """Files that tests copy before they change them."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "good.urdf").write_text(case.given.urdf)
    write_npz(case.recordings[0], folder / "good.npz")
    write_bag(case.recordings[0], folder / "good_bag")
    return folder


@pytest.fixture
def folder(inputs, tmp_path, monkeypatch):
    """Working directory with good.npz, good_bag, good.urdf."""
    shutil.copytree(inputs, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def result_directory(inputs, tmp_path_factory):
    """A result that tests copy before they change it."""
    output = tmp_path_factory.mktemp("result") / "out"
    arguments = ("identify", inputs / "good.npz", "--urdf", inputs / "good.urdf", "--output", output, "--quiet")
    assert cli.main([*map(str, arguments)]) in (0, 3)
    return output


@pytest.fixture
def result(folder, result_directory):
    """As identified from good.npz and good.urdf into out of the working directory."""
    return shutil.copytree(result_directory, folder / "out")


@pytest.fixture
def refused(folder, capsys):
    """Runs a command and returns its one line of complaint."""

    def run(*arguments):
        before = sorted(os.listdir(folder))
        capsys.readouterr()
        try:
            status = cli.main([*map(str, arguments)])
        except SystemExit as ended:
            status = ended.code
        out, err = capsys.readouterr()
        complaints = [line for line in err.splitlines() if line.startswith("inertid: error: ")]
        assert status == 2, err
        assert out == "" and len(complaints) == 1 and "Traceback" not in err
        assert err.splitlines()[-1] == complaints[0]
        assert sorted(os.listdir(folder)) == before, "nothing is left behind"
        return complaints[0].removeprefix("inertid: error: ")

    return run


def _identify(*recordings, urdf="good.urdf", more=()):
    return ("identify", *recordings, "--urdf", urdf, "--output", "out", *more)


def _change(**changes):
    """Write bad.npz: good.npz with keys replaced, or dropped where None."""
    with np.load("good.npz") as archive:
        content = {key: archive[key] for key in archive.files} | changes
    np.savez("bad.npz", **{key: value for key, value in content.items() if value is not None})


def _spoil(key, row, value):
    with np.load("good.npz") as archive:
        values = archive[key].copy()
    values[row] = value
    _change(**{key: values})


@pytest.mark.parametrize(
    "prepare, message",
    [
        (lambda: _change(joint_names=np.array(list("abc"))), "bad.npz: joint_names lacks joint0, joint1, .*--lock"),
        (lambda: _change(effort=None), "bad.npz: lacks effort .*; a recording holds"),
        (lambda: _change(joint_names=None), "bad.npz: lacks joint_names"),
        (lambda: _change(time=None), "bad.npz: lacks time"),
        (lambda: _spoil("effort", (), np.nan), "bad.npz: effort is missing for every joint; enable"),
        (lambda: _spoil("position", (slice(None), 0), np.inf), "bad.npz: position of joint 'joint0' holds 100% NaN"),
        (lambda: _spoil("time", slice(40, 80), 0.0), "bad.npz: time goes back or repeats at sample 40 .*; check the"),
        (lambda: _change(position=np.zeros((3, 3))), r"bad.npz: position has shape \(3, 3\), expected"),
        (lambda: _change(effort=np.zeros((500, 3))), "bad.npz: effort is zero throughout"),
        (lambda: open("bad.npz", "wb").close(), "bad.npz: is empty; copy or download it again, and give an .npz"),
        (lambda: os.mkdir("bad.npz"), "bad.npz: is a directory without metadata.yaml"),
        (lambda: os.system("cp good.urdf bad.npz"), "bad.npz: is not a recording; give"),
        (lambda: Path("bad.npz").write_bytes(b"#ROSBAG V2.0\nE"), "bad.npz: is a bag of ROS 1; .*'rosbags-convert"),
        (lambda: Path("bad.npz").write_text("t,q1,tau1\n0,1,2\n"), r"bad.npz: holds 1 samples; record at least"),
        (lambda: None, "bad.npz: no such file; give"),
    ],
)
def test_bad_recordings(prepare, message, folder, refused):
    prepare()
    assert re.match(message, refused(*_identify("bad.npz")))


_EXCITE = ("excite", "--urdf", "good.urdf", "--output", "out")
_READERS = {
    "recording": (lambda path: _identify(path)),
    "validation": (lambda path: _identify("good.npz", more=("--validate", path))),
    "URDF": (lambda path: _identify("good.npz", urdf=path)),
    "configuration": (lambda path: _identify("good.npz", more=("--config", path))),
    "earlier result": (lambda path: _identify("good.npz", more=("--set", f"identify.prior={path}"))),
    "plan": (lambda path: ("excite", "--urdf", "good.urdf", "--check", path)),
    "SRDF": (lambda path: (*_EXCITE, "--set", f"excitation.collision.srdf={path}")),
    "description": (lambda path: ("info", path)), "input": (lambda path: ("convert", path, "out.npz")),
    "sensor": (lambda path: ("force-sensor", path)),
    "robot": (lambda path: ("init", path)), "perturbed": (lambda path: ("perturb", path, "--output", "out.urdf")),
    "catalogue": (lambda path: ("fleet", path, "--output", "out")), "result": (lambda path: ("report", path)),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize("reader", _READERS)
def test_what_never_ends_or_begins_is_refused(reader, kind, folder, refused, monkeypatch):
    monkeypatch.setattr("inertid_ros.core.formats._SILENCE_S", 0.05)
    if kind == "pipe":
        os.mkfifo("endless")
    path = "endless" if kind == "pipe" else "/dev/zero"
    begin = time.monotonic()
    assert path in refused(*_READERS[reader](path))
    assert time.monotonic() - begin < 10.0


def test_results_whose_files_are_pipes_are_refused(result, refused, monkeypatch):
    monkeypatch.setattr("inertid_ros.core.formats._SILENCE_S", 0.05)
    for name in ("report.json", "parameters.yaml", "calibrated.urdf"):
        kept = (result / name).read_bytes()
        (result / name).unlink()
        os.mkfifo(result / name)
        assert "out" in refused("validate", "out", "good.npz")
        (result / name).unlink()
        (result / name).write_bytes(kept)


@pytest.mark.parametrize("seed", range(4))
def test_results_with_numbers_that_are_not_finite_are_refused(seed, result, refused):
    rng, file = np.random.default_rng(seed), result / "parameters.yaml"
    content = yaml.safe_load(file.read_text())
    row = content[str(rng.choice(["parameters", "prior", "covariance"]))]
    while isinstance(row[0], list):
        row = row[rng.integers(len(row))]
    row[rng.integers(len(row))] = float(rng.choice([np.nan, np.inf, -np.inf]))
    file.write_text(yaml.safe_dump(content))
    for command in (("export", "out", "--to", "csv", "--output", "a.csv"), ("predict", "out", "good.npz"),
                    ("validate", "out", "good.npz"), ("payload", "out", "good.npz"), ("report", "out")):  # fmt: skip
        assert "parameters.yaml: is damaged (holds NaN or infinite numbers); identify again" in refused(*command)


@pytest.mark.parametrize("key", ["provenance", "residual_deviation", "links", "solver"])
@pytest.mark.parametrize("content", [None, [], "text"])
def test_results_with_a_damaged_report_end_in_a_result_or_one_line(key, content, result, capsys):
    report = json.loads((result / "report.json").read_text())
    (result / "report.json").write_text(json.dumps({**report, key: content} if content is not None else {
        name: value for name, value in report.items() if name != key}))  # fmt: skip
    for command in (("export", "out", "--to", "csv", "--output", "a.csv", "--force"), ("predict", "out", "good.npz"),
                    ("validate", "out", "good.npz"), ("payload", "out", "good.npz"), ("report", "out"),
                    (*_identify("good.npz", "--force"), "--prior", "out")):  # fmt: skip
        assert cli.main([*command]) in (0, 2, 3), capsys.readouterr().err


@pytest.mark.parametrize("name", [b"\xff", b"a\tb", b"\x1b[31m"])
def test_files_of_any_name_are_read_and_written(name, folder, result, capsys):
    text = os.fsdecode(name)
    shutil.copy("good.urdf", f"{text}.urdf")
    shutil.copy("good.npz", f"{text}.npz")
    for command in (("init", f"{text}.urdf", "--output", f"{text}.yaml"), ("convert", f"{text}.npz", f"{text}.csv"),
                    ("predict", "out", f"{text}.npz", "--table", f"{text}.table.csv"),
                    ("export", "out", "--to", "csv", "--output", f"{text}.export.csv", "--json")):  # fmt: skip
        assert cli.main([*command]) == 0, capsys.readouterr().err
    assert yaml.safe_load(Path(f"{text}.yaml").read_text()).keys() == {"/**"}
    assert not any(ord(each) < 32 and each not in "\n\t" for each in "".join(capsys.readouterr()))


@pytest.mark.parametrize("seed", range(8))
def test_numbers_of_any_size_end_in_a_result_or_one_line(seed, folder, capsys):
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-320, 308)
    with np.load("good.npz") as archive:
        channels = {key: archive[key] for key in archive.files}
    key = str(rng.choice(["time", "position", "velocity", "effort"]))
    rows = slice(None) if rng.random() < 0.5 else rng.integers(len(channels["time"]), size=rng.integers(1, 30))
    channels[key][rows] = (channels[key][rows] + 1e-3) * scale
    np.savez("bad.npz", **channels)
    text = Path("good.urdf").read_text()
    place = rng.choice([found.span() for found in re.finditer(r"(?<=[\" ])-?\d+\.\d+", text)])
    Path("bad.urdf").write_text(f"{text[:place[0]]}{scale}{text[place[1]:]}")
    for command in (_identify("bad.npz"), ("validate", "good.urdf", "bad.npz"), ("convert", "bad.npz", "a.csv"),
                    ("info", "bad.npz"), (*_identify("good.npz", urdf="bad.urdf"), "--force")):  # fmt: skip
        assert cli.main([*command]) in (0, 2, 3), capsys.readouterr().err


@pytest.mark.parametrize(("channel", "exponent"), [("effort", -156), ("time", -108), ("time", -172), ("time", -240)])
def test_numbers_whose_squares_underflow(channel, exponent, folder, refused):
    with np.load("good.npz") as archive:
        _change(**{channel: (archive[channel] + 1e-3) * 10.0**exponent})
    assert re.search("effort is zero throughout|or give the time in seconds", refused(*_identify("bad.npz")))


def test_numbers_that_overflow_print_no_warnings(folder):
    _change(effort=np.full((500, 3), 1e308))
    done = subprocess.run([*INERTID, *_identify("bad.npz")], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr


def test_a_urdf_may_come_from_another_command(folder):
    with subprocess.Popen(["bash", "-c", "sleep 0.3; cat good.urdf"], stdout=subprocess.PIPE) as other:
        assert cli.main([*_identify("good.npz", urdf=f"/dev/fd/{other.stdout.fileno()}"), "--quiet"]) in (0, 3)
    assert (folder / "out" / "report.json").exists()


@pytest.mark.parametrize("formula", ["log(q)", "q**0.5", "1/(q-q)", "exp(exp(exp(q*q+9)))"])
def test_a_formula_that_is_not_finite_on_the_motion_is_named(formula, folder, refused):
    terms = f"robot.terms={{own: {{joint: joint1, expressions: ['{formula}']}}}}"
    message = refused(*_identify("good.npz", more=("--set", terms)))
    assert f"'own.{formula}' is infinite, NaN or too large" in message and "of joint1;" in message


def test_too_many_formulas_are_refused(folder, refused):
    terms = "{" + ", ".join(f"t{k}: {{joint: joint0, expressions: [q]}}" for k in range(3000)) + "}"
    (folder / "many.yaml").write_text(f"robot: {{terms: {terms}}}\n")
    assert "3000 formulas; give at most 200" in refused(*_identify("good.npz", more=("--config", "many.yaml")))


_LONG = "a" * 300


@pytest.mark.parametrize("reader", _READERS)
def test_names_that_no_file_can_have_are_refused(reader, folder, refused):
    assert _LONG in refused(*_READERS[reader](_LONG))


@pytest.mark.parametrize("value", ["1_0.9", "１", "1e300", "0x10"])
def test_numbers_that_other_readers_do_not_take_are_refused(value, folder, refused):
    urdf = (folder / "good.urdf").read_text()
    for bad in (re.sub(r'<mass value="[^"]*"', f'<mass value="{value}"', urdf, count=1),
                urdf.replace("<axis", f'<dynamics damping="{value}"/><axis', 1)):  # fmt: skip
        (folder / "bad.urdf").write_text(bad)
        assert "bad.urdf" in refused(*_identify("good.npz", urdf="bad.urdf"))


def test_a_terminal_of_ascii_shows_reports_and_escapes_names(folder, result, monkeypatch):
    text = (folder / "good.urdf").read_text().replace("joint0", "joint\u00e9")
    (folder / "good.urdf").write_text(text, encoding="utf-8")
    terminal = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert cli.main(["report", "out"]) == 0 and cli.main(["info", "good.urdf"]) == 0
    shown = terminal.buffer.getvalue()
    assert b"Links" in shown and b"joint\\xe9" in shown


@pytest.mark.parametrize("seed", range(12))
def test_changed_reports_are_shown_or_refused(seed, folder, capsys, result_directory):
    """Any one value of report.json replaced: a page, tables and a comparison, or one line."""
    content, rng = json.loads((result_directory / "report.json").read_text()), np.random.default_rng(seed)
    shutil.copytree(result_directory, "changed")
    holder, key = content, str(rng.choice(list(content)))
    while isinstance(holder[key], dict | list) and len(holder[key]) and rng.random() < 0.8:
        holder = holder[key]
        key = int(rng.integers(len(holder))) if isinstance(holder, list) else str(rng.choice(list(holder)))
    holder[key] = [None, "text", -1, 1e308, [], {}, [[1]], {"a": None}, True][rng.integers(9)]
    (folder / "changed" / "report.json").write_text(json.dumps(content))
    for command in (("report", "changed"), ("report", "changed", "--html", "page.html", "--force"),
                    ("report", "--compare", "changed", str(result_directory)), ("info", "changed")):  # fmt: skip
        assert cli.main([*command]) in (0, 2), capsys.readouterr().err
        assert "Traceback" not in capsys.readouterr().err


_ESCAPES = ("\x1b[31mred", "\x1b]0;title\x07", "a\rb", "\x9b2J", "\u202egnp", "a\x00b")


@pytest.mark.parametrize("text", _ESCAPES)
def test_no_control_character_reaches_the_terminal(text, result, capsys):
    """From names of joints in a recording, and from texts of a result."""
    _change(joint_names=np.array([text.strip("\0") or "x", *read_npz("good.npz").joint_names[1:]]))
    cli.main([*_identify("bad.npz")])
    cli.main(["info", "bad.npz"])
    report = result / "report.json"
    content = json.loads(report.read_text())
    content["message"] = content["solver"]["name"] = content["links"][0]["name"] = text
    report.write_text(json.dumps(content))
    cli.main(["report", "out"])
    cli.main(["info", "out"])
    cli.main(["report", "--compare", "out", "out"])
    written = "".join(capsys.readouterr())
    assert all(character.isprintable() or character in "\n\t" for character in written), ascii(written)


def test_a_joint_that_rests_is_named(folder, refused):
    recording = read_npz("good.npz")
    position = recording.position.copy()
    position[:, 1] = 0.3
    _change(position=position)
    line = refused(*_identify("bad.npz"))
    assert "joint1" in line and "bad.npz" in line


def test_extra_joints_are_only_noticed(folder, capsys):
    recording = read_npz("good.npz")
    more = np.zeros((len(recording), 1))
    names = np.array([*recording.joint_names, "gripper"])
    _change(joint_names=names, velocity=None, position=np.hstack([recording.position, more]),
        effort=np.hstack([recording.effort, more]))
    assert cli.main([*_identify("bad.npz")]) == 0
    assert "bad.npz: ignoring joints that are not in the model: gripper" in capsys.readouterr().err


def test_bags_cut_short_are_read_and_marked_or_refused(folder, capsys):
    file = folder / "good_bag" / "good_bag.mcap"
    whole, kept = file.read_bytes(), sorted(os.listdir(folder))
    statuses = set()
    for share in (0.0, 0.0001, 0.01, 0.3, 0.6, 0.95, 0.9999):
        file.write_bytes(whole[: int(share * len(whole))])
        capsys.readouterr()
        status = cli.main([*_identify("good_bag", more=("--force",))])
        out, err = capsys.readouterr()
        statuses.add(status)
        if status:
            assert status == 2 and err.splitlines()[-1].startswith("inertid: error: good_bag: ")
            assert sorted(set(os.listdir(folder)) - {"out"}) == kept
        else:
            assert "good_bag: bag was not closed or is damaged: recovered" in err
            assert "recovered" in (folder / "out" / "report.json").read_text()
    assert statuses == {0, 2}


@pytest.mark.parametrize(
    "text, message",
    [
        ("not xml at all", "bad.urdf: URDF: not XML .*; give a URDF file"),
        ("<robot name='r'><link name='a'></robot>", "bad.urdf: URDF: not XML"),
        ("<world/>", "bad.urdf: URDF: root element is <world>"),
        ("<mujoco/>", "bad.urdf: URDF robot .*: has no movable joint left"),
        (None, "bad.urdf: no such URDF file; check the path"),
    ],
)
@pytest.mark.parametrize("command", ["identify", "validate", "perturb"])
def test_bad_urdfs(text, message, command, folder, refused):
    if text is not None:
        (folder / "bad.urdf").write_text(text)
    arguments = {
        "identify": _identify("good.npz", urdf="bad.urdf"),
        "validate": ("validate", "bad.urdf", "good.npz"),
        "perturb": ("perturb", "bad.urdf", "--output", "new.urdf"),
    }
    assert re.match(message, refused(*arguments[command]))


def test_inertias_in_kg_mm2_are_refused_with_the_factor(folder, refused):
    text = (folder / "good.urdf").read_text()
    scaled = re.sub('(i[xyz]{2})="([^"]*)"', lambda m: f'{m[1]}="{float(m[2]) * 1e6!r}"', text)
    (folder / "bad.urdf").write_text(scaled)
    line = refused(*_identify("good.npz", urdf="bad.urdf"))
    assert re.match("bad.urdf: URDF link 'link.': its inertia has a radius of gyration of .*multiply all by 1e-6", line)


@pytest.mark.parametrize(
    "more, message",
    [
        (("--config", "absent.yaml"), "absent.yaml: no such configuration file"),
        (("--config", "good.npz"), "good.npz: "),
        (("--set", "prepare.cutoff=3"), "command line: prepare.cutoff is not an option; did you mean"),
        (("--set", "prepare.cutoff_hz=-3"), "command line: prepare.cutoff_hz is -3.0; it must lie between"),
        (("--set", "prepare.cutoff_hz"), "command line: prepare.cutoff_hz is None, expected a number"),
        (("--set", "prepare.cutoff_hz=[1"), "--set prepare.cutoff_hz=[1: the value is not YAML"),
        (("--set", "robot.command_kp={a: .nan}"), "command line: robot.command_kp.a is nan; it must lie between"),
        (("--set", "prepare.cutoff_hz=80"), "good.npz: prepare.cutoff_hz is 80 but the sample rate is 100.0 Hz"),
        (("--set", "prepare.skip_start_s=50"), "good.npz: time spans 4.99 s, too short to skip 50 s"),
        (("--set", "constraints.fixed=[ghost.m]"), "constraints: no parameter 'ghost.m'"),
        (("--lock", "ghost=1"), "good.urdf: locked joint 'ghost': the URDF has no movable joint of this name"),
        (("--lock", "joint1"), "--lock: 'joint1' is not JOINT=POSITION"),
        (("--validate", "good.npz"), "good.npz: is used in the fit, so it cannot validate the fit"),
        (("--validate", "absent"), "absent: no such file; give"),
        (("--output", "good.npz"), "good.npz: is a file; choose a directory"),
        (("--output", "good_bag"), "good_bag: exists and is not empty"),
        (("--output", "good_bag", "--force"), "good_bag: is a recording, which a result does not replace"),
        (("--output", "good.npz/out"), "good.npz/out: cannot be written (good.npz is not a directory"),
        (("--frobnicate",), "unrecognized arguments: --frobnicate; see inertid"),
    ],
)
def test_bad_options(more, message, refused):
    assert refused(*_identify("good.npz", more=more)).startswith(message)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((), "the following arguments are required: COMMAND; see inertid --help"),
        (("fly",), "argument COMMAND: invalid choice: 'fly'"),
        (("identify",), "the following arguments are required: RECORDING, --urdf, --output; see inertid identify"),
        (("report", "absent"), "absent: no such result directory"),
        (("report", "x" * 300), f"{'x' * 300}: no such result directory"),
        (("report", "good_bag"), "good_bag: has no parameters.yaml and is not a result directory"),
        (("validate", "good_bag", "good.npz"), "good_bag: has no parameters.yaml"),
        (("validate", "good.urdf", "good.npz", "--set", "identify.estimator=ols"),
            "--set identify.estimator=ols: `inertid validate` does not use identify.estimator"),
        (("perturb", "good.urdf", "--seed", "-1", "--output", "new.urdf"), "argument --seed: -1 is not between 0 and"),
        (("force-sensor", "good.npz", "--urdf", "good.urdf", "--frame", "link1", "--set", "robot.base=free"),
            "robot.base: on a free base, joint positions do not give the sensor's pose"),
        (("validate", "good.urdf", "absent"), "absent: no such file"),
        (("validate", "good.npz", "good.npz"), "good.npz: cannot be read as URDF text"),
        (("convert", "good.npz", "good.npz"), "good.npz: is an input of this command"),
        (("convert", "good.npz", "good.npz", "--force"), "good.npz: is an input of this command"),
        (("convert", "absent", "new.npz"), "absent: no such file"),
        (("convert", "good.npz", "new.db3", "--storage", "mcap"), "new.db3: its suffix means sqlite3"),
        (("convert", "good.npz", "good.urdf/new"), "good.urdf/new: cannot be written"),
        (("info", "absent"), "absent: no such file; give"),
        (("perturb", "good.urdf", "--output", "good.npz"), "good.npz: exists already"),
        (("perturb", "good.urdf", "--output", "new", "--seed", "x"), "argument --seed: invalid number value: 'x'"),
    ],
)
def test_bad_usage(arguments, message, refused):
    assert refused(*arguments).startswith(message)


def test_a_robot_of_another_geometry_is_no_baseline(folder, refused):
    (folder / "other.urdf").write_text(synthetic_case(6, recordings=0).given.urdf)
    line = refused("validate", "good.urdf", "good.npz", "--urdf", "other.urdf")
    assert line.startswith("other.urdf: has other joints or another geometry")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert ended.value.code == 0 and "usage: inertid " + command in capsys.readouterr().out


def test_memory_that_runs_out_is_one_line(folder, refused, monkeypatch):
    from inertid_ros.cli import info

    monkeypatch.setattr(info, "run", lambda options: np.zeros(2**62, dtype=np.uint8))
    assert refused("info", "good.npz").startswith("out of memory; raise the limit (ulimit -v), or use")


@pytest.mark.parametrize("limit_kib", [300_000, 450_000])
def test_too_little_address_space_is_refused_before_a_library_waits_for_it(limit_kib, folder):
    """OpenBLAS asks for its buffers without end, and no signal comes through meanwhile."""
    shell = f'ulimit -v {limit_kib}; exec "{sys.executable}" -m inertid_ros.cli.main info good.npz'
    done = subprocess.run(["bash", "-c", shell], cwd=folder, capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    wanted = f"the address space is limited to {limit_kib // 1024} MiB, and a command needs 600; raise ulimit -v"
    assert done.stderr.strip() == f"inertid: error: {wanted}"


def test_an_internal_fault_is_one_line_and_says_how_to_see_more(folder, capsys, monkeypatch):
    from inertid_ros.cli import info

    def fail(options):
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr(info, "run", fail)
    assert cli.main(["info", "good.npz"]) == 1
    expected = "inertid: error: unexpected ZeroDivisionError: division by zero; run again with --debug and report it\n"
    assert capsys.readouterr().err == expected
    with pytest.raises(ZeroDivisionError):
        cli.main(["info", "good.npz", "--debug"])


@pytest.mark.parametrize(
    ("arguments", "both"),
    [
        (("excite", "--urdf", "good.urdf", "--start", "a=0", "--check", "plan.yaml"), ("--start", "--check")),
        (("convert", "good.npz", "other.npz", "--storage", "mcap"), ("other.npz", "--storage")),
        (("fleet", "c.yaml", "--output", "f", "--scheduler", "x:1", "--workers", "2"), ("--scheduler", "--workers")),
        (_identify("good.npz", more=("--model", "momentum", "--set", "identify.equations=force")),
            ("--model momentum", "--set identify.equations=force")),
        (_identify("good.npz", more=("--lock", "a=1", "--lock", "a=2")), ("--lock", "a")),
        (_identify("good.npz", more=("--set", "identify.solver=clarabel", "--set", "identify.estimator=ols")),
            ("identify.solver", "identify.estimator")),
        (("excite", "--urdf", "good.urdf", "--output", "out", "--set", "excitation.intervals=8"),
            ("excitation.intervals", "excitation.kind")),
    ],
)
def test_two_settings_of_which_one_would_be_ignored(refused, arguments, both):
    message = refused(*arguments)
    assert all(name in message for name in both), message


def test_a_result_brings_its_own_robot(refused, result):
    """What a validation or a payload is configured with is the robot that was identified."""
    same = ("--set", "robot.gravity=[0, 0, -9.81]")
    assert cli.main(["validate", "out", "good.npz", *same]) in (0, 3)
    for command in (("validate", "out", "good.npz"), ("payload", "out", "good.npz")):
        message = refused(*command, "--set", "robot.gravity=[0, 0, -1.6]")
        assert "robot.gravity is [0.0, 0.0, -1.6], but out was identified with [0.0, 0.0, -9.81]" in message
    message = refused("payload", "out", "good.npz", "--reference-drift", "0.1")
    assert "--reference-drift has no effect without --reference" in message


def test_a_reader_that_leaves_does_not_change_the_exit_status(result_directory, tmp_path):
    directory = shutil.copytree(result_directory, tmp_path / "out")
    for command in (("report", directory), ("report", directory, "--json")):  # a table, and one long line
        words = [*INERTID, *map(str, command)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stderr is not None
            process.stdout.close()
            told = process.stderr.read()
            assert process.wait() == 0 and told == b"", told
