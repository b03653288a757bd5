"""Files of motion capture: TRC, STO and MOT of OpenSim, and C3D."""

import numpy as np
import pytest

CORNERS = np.array([[0.0, 0.6, 0.0], [0.4, 0.6, 0.0], [0.4, 0.0, 0.0], [0.0, 0.0, 0.0]])
TURN = np.diag([-1.0, 1.0, -1.0])  # axes of the plate of these corners, whose z-axis points down


def write_trc(path, time, markers):
    """Markers ``(N, 3)`` [m] by their names, in millimetres; NaN is left empty."""
    names, rate = "\t\t\t".join(markers), 1 / (time[1] - time[0])
    lines = [
        f"PathFileType\t4\t(X/Y/Z)\t{path.name}",
        "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\tOrigDataRate\tOrigDataStartFrame\tOrigNumFrames",
        f"{rate}\t{rate}\t{len(time)}\t{len(markers)}\tmm\t{rate}\t1\t{len(time)}",
        f"Frame#\tTime\t{names}\t\t",
        "\t\t" + "\t".join(f"{axis}{k}" for k in range(1, len(markers) + 1) for axis in "XYZ"),
        "",
    ]
    for k, row in enumerate(np.hstack([1e3 * place for place in markers.values()])):
        cells = ["" if np.isnan(value) else f"{value:.6f}" for value in row]
        lines.append("\t".join([str(k + 1), f"{time[k]:.4f}", *cells]))
    path.write_text("\n".join(lines) + "\n")


def write_sto(path, names, columns):
    """Named columns ``(N, k)``, with angles in degrees."""
    head = [path.stem, "version=1", f"nRows={len(columns)}", f"nColumns={len(names)}", "inDegrees=yes", "endheader"]
    rows = ["\t".join(f"{value:.9f}" for value in row) for row in columns]
    path.write_text("\n".join([*head, "\t".join(names), *rows]) + "\n")


def write_mot(path, time, loads):
    """Force, its point and free torque ``(N, 3)`` each, by the number of the plate."""
    names, columns = ["time"], [time[:, None]]
    for plate, parts in loads.items():
        names += [f"{plate}_ground_force_{part}{axis}" for part in "vp" for axis in "xyz"]
        names += [f"{plate}_ground_torque_{axis}" for axis in "xyz"]
        columns += parts
    write_sto(path, names, np.hstack(columns))


def write_c3d(path, time, markers, stamps, load):
    """Markers ``(N, 3)`` [m], and force, its point and free torque at ``stamps`` on one plate."""
    ezc3d = pytest.importorskip("ezc3d", reason="needs ezc3d (pip install ezc3d)")
    file, point = ezc3d.c3d(), np.ones((4, len(markers), len(time)))
    point[:3] = 1e3 * np.stack(list(markers.values()), axis=1).transpose(2, 1, 0)
    parameters = file["parameters"]
    for key, value in (("RATE", [1 / (time[1] - time[0])]), ("LABELS", tuple(markers)), ("UNITS", ("mm",))):
        parameters["POINT"][key]["value"] = value
    file["data"]["points"] = point
    force, place, free = load
    moment = free + np.cross(place - CORNERS.mean(axis=0), force)
    parameters["ANALOG"]["RATE"]["value"] = [1 / (stamps[1] - stamps[0])]
    parameters["ANALOG"]["LABELS"]["value"] = ("Fx", "Fy", "Fz", "Mx", "My", "Mz")
    file["data"]["analogs"] = np.hstack([force @ TURN, 1e3 * moment @ TURN]).T[None]
    for key, value in (("CORNERS", 1e3 * CORNERS.T[:, :, None]), ("ORIGIN", np.zeros((3, 1)))):
        file.add_parameter("FORCE_PLATFORM", key, value)
    for key, value in (("USED", [1.0]), ("TYPE", [2.0]), ("CHANNEL", np.arange(1.0, 7.0)[:, None])):
        file.add_parameter("FORCE_PLATFORM", key, np.array(value))
        parameters["FORCE_PLATFORM"][key]["type"] = 2
    parameters["FORCE_PLATFORM"]["UNITS"] = {**parameters["POINT"]["UNITS"], "value": ["N"]}
    file.write(str(path))
