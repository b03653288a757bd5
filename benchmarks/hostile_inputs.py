"""Time, memory and outcome of hostile inputs, for this version and for an earlier one.

    mkdir earlier && git archive 9e4fd58 inertid_ros | tar x -C earlier
    PYTHONPATH=benchmarks:test python benchmarks/hostile_inputs.py --earlier earlier
"""

import argparse
import io
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import yaml
from support.recordings.synthetic_calibration import synthetic_case
from tables import machine, publish, table

from inertid_ros.data.files.bag_backends import write_bag
from inertid_ros.data.files.loading import write_npz

LIMIT_S, LIMIT_GIB = 100.0, 4
MAIN = "import sys; from inertid_ros.cli.main import main; sys.exit(main(sys.argv[1:]))"
IDENTIFY = "identify good.npz --urdf good.urdf --output out --force"
COMMANDS: Mapping[str, str] = {
    "a pipe without a writer as recording": "info pipe.npz",
    "/dev/zero as configuration": f"{IDENTIFY} --config zero.yaml",
    "/dev/zero as plan": "excite --urdf good.urdf --check zero.yaml",
    "/dev/zero as metadata.yaml of a bag": "info endless_bag",
    "metadata.yaml that names a file 10,000 times": "info repeating_bag",
    "configuration of 60,000 open brackets": f"{IDENTIFY} --config brackets.yaml",
    "configuration with aliases of 10^9 elements": f"{IDENTIFY} --config aliases.yaml",
    "URDF with entities of 10^9 characters": "info entities.urdf",
    "2,000 user terms": f"{IDENTIFY} --config terms.yaml",
    "recording of 1 MB that unpacks to 400 MB": "info packed.npz",
    "recording that declares 8 TB": "info declared.npz",
    "curves.npz of 5 MB that unpacks to 1 GB": "report result --html page.html --force",
    "damaged MATLAB file": "info damaged.mat",
    "numbers of 1e-156 as efforts": "identify tiny.npz --urdf good.urdf --output out --force",
    "table with 20,000 columns": "info columns.csv",
    "MJCF with 10^9 geometries": "export result --to mjcf --onto endless.xml --output robot.xml --force",
}


def _zeros(count: int) -> bytes:
    """An npy of so many zeros."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.zeros(count))
    return buffer.getvalue()


def write_inputs(folder: Path) -> None:
    """Write all inputs but the result."""
    case = synthetic_case(5, recordings=1, duration=5.0)
    (folder / "good.urdf").write_text(case.given.urdf)
    write_npz(case.recordings[0], folder / "good.npz")
    os.mkfifo(folder / "pipe.npz")
    (folder / "zero.yaml").symlink_to("/dev/zero")
    for name in ("endless_bag", "repeating_bag"):
        write_bag(case.recordings[0], folder / name)
    metadata = folder / "repeating_bag" / "metadata.yaml"
    content = yaml.safe_load(metadata.read_text())
    content["rosbag2_bagfile_information"]["relative_file_paths"] *= 10_000
    metadata.write_text(yaml.dump(content, Dumper=yaml.CSafeDumper))
    (folder / "endless_bag" / "metadata.yaml").unlink()
    (folder / "endless_bag" / "metadata.yaml").symlink_to("/dev/zero")
    (folder / "brackets.yaml").write_text("robot: " + "[" * 60_000)
    levels = [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}' if k else '1'] * 10)}]" for k in range(10)]
    (folder / "aliases.yaml").write_text("\n".join(levels))
    entities = "".join(f'<!ENTITY e{k} "{(f"&e{k - 1};" if k else "x") * 10}">' for k in range(10))
    (folder / "entities.urdf").write_text(f'<!DOCTYPE r [{entities}]><robot name="r"><link name="&e9;"/></robot>')
    terms = {f"t{k}": {"joint": "joint0", "expressions": [f"sin({k + 1}*q)"]} for k in range(2000)}
    (folder / "terms.yaml").write_text(yaml.safe_dump({"robot": {"terms": terms}}))
    with np.load(folder / "good.npz") as archive:
        arrays = {key: archive[key] for key in archive.files}
    with zipfile.ZipFile(folder / "packed.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        made.writestr("time.npy", _zeros(5 * 10**7))
    with zipfile.ZipFile(folder / "curves.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        for k in range(4):
            made.writestr(f"friction/{k}/torque.npy", _zeros(2**25))
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    with zipfile.ZipFile(folder / "declared.npz", "w") as made:
        made.writestr("time.npy", header.getvalue())
    tiny = {**arrays, "effort": (arrays["effort"] + 1e-3) * 1e-156}
    np.savez(folder / "tiny.npz", **tiny)
    names, zeros = (",".join(cells) for cells in ([f"j{k}_position" for k in range(20_000)], ["0"] * 20_000))
    (folder / "columns.csv").write_text(f"{names}\n{zeros}\n")
    corpus = Path(__file__).resolve().parent.parent / "test" / "fuzz" / "corpus" / "mat"
    (folder / "damaged.mat").write_bytes((corpus / "crashes_scipy.mat").read_bytes())


def run(command: str, folder: Path, package: Path | None) -> tuple[float, float, str]:
    """CPU time [s], peak resident memory [MiB] and outcome of a command; it is ended at the limits."""
    path = os.pathsep.join(filter(None, (str(package or ""), os.environ.get("PYTHONPATH", ""))))
    with tempfile.TemporaryFile() as err:
        begun = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-c", MAIN, *command.split()], cwd=folder, stdout=subprocess.DEVNULL, stderr=err,
            stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": path}, start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (LIMIT_GIB * 2**30,) * 2))
        late = False
        while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
            time.sleep(0.01)
            if not late and time.monotonic() - begun > LIMIT_S:
                late = True
                os.killpg(process.pid, signal.SIGKILL)
        seconds, status = time.monotonic() - begun, os.waitstatus_to_exitcode(ended[1])
        err.seek(0)
        lines = err.read().decode(errors="replace").splitlines() or [""]
    if late:
        outcome = "ended at the limit"
    elif status < 0:
        outcome = signal.Signals(-status).name
    elif status == 2 and "invalid choice" in lines[-1]:
        return seconds, 0.0, "no such command"
    elif status == 1:
        outcome = "status 1" + (", out of memory" if "emory" in lines[-1] else "")
    else:
        outcome = {0: "done", 2: "one line", 3: "done, not to be used"}.get(status, f"status {status}")
    if not late:
        seconds = ended[2].ru_utime + ended[2].ru_stime  # other processes do not count
    return seconds, ended[2].ru_maxrss / 2**10, outcome


def measured(folder: Path, package: Path | None) -> list[str]:
    """Cell of the table for every input."""
    cells = []
    shutil.rmtree(folder / "result", ignore_errors=True)
    run("identify good.npz --urdf good.urdf --output result", folder, package)
    shutil.copy(folder / "curves.npz", folder / "result" / "curves.npz")
    run("export result --to mjcf --output valid.xml --force", folder, package)
    text = (folder / "valid.xml").read_text() if (folder / "valid.xml").exists() else ""
    endless = '<replicate count="1000000000"><geom size="1"/></replicate>'
    (folder / "endless.xml").write_text(text.replace("</worldbody>", f"{endless}</worldbody>"))
    for what, command in COMMANDS.items():
        seconds, mib, outcome = run(command, folder, package)
        cells.append(f"{outcome}, {seconds:.1f} s, {mib:.0f} MiB" if mib else outcome)
        print(what, "|", cells[-1], flush=True)
    return cells


def main() -> None:
    """Run all commands and publish the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--earlier", type=Path, help="folder with the package inertid_ros of an earlier version")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        write_inputs(Path(name))
        columns = {"now": measured(Path(name), None)}
        if options.earlier:
            columns = {f"before ({options.earlier.name})": measured(Path(name), options.earlier.resolve()), **columns}
    rows = [(what, *cells) for what, *cells in zip(COMMANDS, *columns.values(), strict=True)]
    publish("hostile-inputs", f"""## Hostile inputs

`python benchmarks/hostile_inputs.py`: outcome, CPU time and peak resident memory of a command with a hostile file,
including the start of Python and the package (alone about 1 s and 120 MiB). A command is ended after
{LIMIT_S:g} s of waiting, and gets an address space of at most {LIMIT_GIB} GiB. "One line" is a refusal in one
line, with exit status 2. The process that reads the MJCF is ended after 8 s and not counted.

{table(("input", *columns), rows)}

Measured on {machine()}.""")


if __name__ == "__main__":
    main()
