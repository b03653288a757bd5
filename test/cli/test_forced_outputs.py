"""``--force`` on random folders: nothing but the package's own files ever changes. 1,000: ``benchmarks/outputs.py``."""

import os
import shutil
import stat

import pytest
from support.random_outputs import Templates, draw, run, snapshot

DRAWS = 40


@pytest.fixture(scope="module")
def templates(tmp_path_factory):
    return Templates(tmp_path_factory.mktemp("templates"))


@pytest.fixture
def folder(templates, tmp_path, monkeypatch):
    """Working directory with a result, its recordings and its URDF, a motion and a bag."""
    shutil.copytree(templates.folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands(target):
    """All commands that write with ``--force``."""
    return {
        "identify": ["run.npz", "--urdf", "robot.urdf", "--output", target],
        "excite": ["--urdf", "robot.urdf", "--output", target],
        "convert": ["run.npz", target],
        "report": ["result", "--html", target],
        "export": ["result", "--to", "csv", "--output", target],
        "perturb": ["robot.urdf", "--output", target],
        "init": ["robot.urdf", "--output", target],
        "payload": ["result", "run.npz", "--output", target],
    }


def test_only_what_the_package_wrote_is_replaced(templates):
    draws = [draw(templates, seed) for seed in range(DRAWS)]
    assert [line for each in draws for line in each.violations] == []
    assert {each.outcome for each in draws} == {"written", "replaced", "refused"}


@pytest.mark.parametrize("thing", ["device", "FIFO", "link to /dev/null"])
def test_devices_stay_also_for_root(thing, folder):
    target = folder / "target"
    if thing == "FIFO":
        os.mkfifo(target)
    elif thing == "device":
        if os.geteuid():
            pytest.skip("devices can be made by root alone")
        os.mknod(target, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    else:
        target.symlink_to("/dev/null")
    before = snapshot(folder)
    for command, arguments in commands("target").items():
        done = run(command, [*arguments, "--force"])
        assert done.status == 2 and f"target: is a {thing.split()[0]}" in done.error
    assert snapshot(folder) == before


def test_a_result_beside_its_recordings_is_not_replaced_with_them(folder):
    for name in ("run.npz", "robot.urdf"):
        shutil.copy(name, folder / "result" / name)
    before = snapshot(folder)
    os.chdir("result")
    done = run("identify", ["run.npz", "--urdf", "robot.urdf", "--output", ".", "--force"])
    assert done.status == 2 and "result: holds run.npz, an input of this command" in done.error
    done = run("identify", ["../recording", "--urdf", "../robot.urdf", "--output", "../result", "--force"])
    assert done.status == 2 and "../result: holds robot.urdf, run.npz, which inertid did not write" in done.error
    assert snapshot(folder) == before


def test_notes_beside_a_plan_stay(folder):
    (folder / "motion" / "notes.txt").write_text("hold the cable")
    before = snapshot(folder)
    done = run("excite", [*commands("motion")["excite"], "--force"])
    assert done.status == 2 and "motion: holds notes.txt, which inertid did not write" in done.error
    assert snapshot(folder) == before


def test_a_tree_with_a_metadata_file_is_no_bag(folder):
    (folder / "photos").mkdir()
    for name in ("metadata.yaml", "cat.jpg"):
        (folder / "photos" / name).write_text("mine")
    before = snapshot(folder)
    done = run("convert", [*commands("photos")["convert"], "--force"])
    assert done.status == 2 and "photos: holds cat.jpg, metadata.yaml and no list of inertid's files" in done.error
    assert snapshot(folder) == before
    assert os.system(f"mv {done.error.partition(': mv ')[2]}") == 0  # the remedy as it is printed
    assert run("convert", [*commands("photos")["convert"], "--force"]).status == 0
