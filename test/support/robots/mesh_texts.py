"""Meshes as OBJ, STL and COLLADA, right ones and hostile ones, and a robot that has them."""

import re
import struct

import numpy as np
import scipy
from support.robots.random_robots import random_urdf

CUBE = np.array(np.meshgrid([-0.05, 0.05], [-0.05, 0.05], [0.0, 0.2])).reshape(3, -1).T
TRIANGLES = scipy.spatial.ConvexHull(CUBE).simplices


def obj(points=CUBE, triangles=TRIANGLES):
    lines = ["v " + " ".join(f"{x!r}" for x in point) for point in points.tolist()]
    lines += ["f " + " ".join(str(corner + 1) for corner in corners) for corners in triangles.tolist()]
    return "\n".join(lines).encode() + b"\n"


def ascii_stl(points=CUBE, triangles=TRIANGLES):
    out = ["solid cube"]
    for corners in triangles:
        out += ["facet normal 0 0 0", "outer loop"]
        out += ["vertex " + " ".join(f"{x!r}" for x in points[corner].tolist()) for corner in corners]
        out += ["endloop", "endfacet"]
    return "\n".join([*out, "endsolid cube"]).encode() + b"\n"


def binary_stl(points=CUBE, triangles=TRIANGLES, count=None):
    content = b"binary".ljust(80) + struct.pack("<I", len(triangles) if count is None else count)
    for corners in triangles:
        content += struct.pack("<12fH", 0, 0, 0, *points[corners].ravel(), 0)
    return content


def collada(points=CUBE, triangles=TRIANGLES, nodes='<node id="a"><instance_geometry url="#g"/></node>'):
    numbers, corners = " ".join(map(str, points.ravel().tolist())), " ".join(map(str, triangles.ravel().tolist()))
    return f"""<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit name="meter" meter="1"/><up_axis>Z_UP</up_axis></asset>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="pa" count="{points.size}">{numbers}</float_array>
<technique_common><accessor source="#pa" count="{len(points)}" stride="3">
<param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common>
</source><vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles count="{len(triangles)}"><input semantic="VERTEX" source="#v" offset="0"/><p>{corners}</p></triangles>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s">{nodes}</visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>
""".encode()


RIGHT = {"a.obj": obj(), "a.stl": ascii_stl(), "b.stl": binary_stl(), "a.dae": collada()}


def _moved(x):
    points = CUBE.copy()
    points[0, 0] = x
    return points


# What each is refused for.
HOSTILE = {
    "itself.dae": (collada(nodes='<node id="a"><instance_node url="#a"/></node>'), "ends with SIGSEGV"),
    "nan.stl": (binary_stl(_moved(np.nan)), "not finite"),
    "infinite.stl": (binary_stl(_moved(np.inf)), "not finite"),
    "far.stl": (binary_stl(_moved(1e37)), "it extends to 1e[+]37 m, more than any link [(]1000 m[)]"),
    "millimetres.obj": (obj(CUBE * 1e4), "it extends to 2e[+]03 m"),
    "line.stl": (ascii_stl(CUBE * [0, 1, 0]), ""),
    "point.obj": (obj(CUBE * 0), ""),
    "flat.obj": (obj(CUBE * [1, 1, 0]), "it is flat"),
    "empty.stl": (b"", ""),
    "cut.stl": (binary_stl(count=2**32 - 1), ""),
    "no.dae": (b"<COLLADA/>", ""),
    "words.obj": (b"v a b c\nf 1 2 3\n", ""),
}


def bare_robot(folder, contents):
    """URDF file of three links without inertia; those of which a mesh is named have one."""
    text = re.sub("<inertial>.*?</inertial>", "", random_urdf(np.random.default_rng(0), 3, branched=False), flags=re.S)
    for number, (name, content) in enumerate(contents.items()):
        if name:
            (folder / name).write_bytes(content)
            shape = f'<collision><geometry><mesh filename="{name}"/></geometry></collision>'
            text = text.replace(f'<link name="link{number}">', f'<link name="link{number}">{shape}')
    (folder / "robot.urdf").write_text(text)
    return folder / "robot.urdf"
