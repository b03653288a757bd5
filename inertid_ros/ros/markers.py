"""What RViz shows: inertia as the solid ellipsoid of even density that has a body's mass, centre and second moments,
and the way of links along a motion."""

from collections.abc import Mapping, Sequence

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, Quaternion, Vector3
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from inertid_ros.core.arrays import Array
from inertid_ros.robot.bodies.inertial_parameters import is_consistent
from inertid_ros.robot.bodies.uniform_ellipsoid import uniform_ellipsoid

from .transforms import matrix_to_quaternion

GIVEN = ColorRGBA(r=0.6, g=0.6, b=0.6, a=0.35)
PLANNED = ColorRGBA(r=0.9, g=0.5, b=0.1, a=0.9)
_LINE = 0.005  # m, its width
CALIBRATED = ColorRGBA(r=0.1, g=0.7, b=0.3, a=0.6)


def inertia_markers(
    link_names: Sequence[str], bodies: Array, stamp: Time, namespace: str, color: ColorRGBA
) -> MarkerArray:
    """An ellipsoid per body ``(nb, 10)`` in its link's frame; bodies that are not consistent are left out."""
    markers = []
    for index, (name, pi) in enumerate(zip(link_names, bodies, strict=True)):
        if not is_consistent(pi):
            continue
        centre, axes, radii = uniform_ellipsoid(pi)
        x, y, z, w = matrix_to_quaternion(axes).tolist()
        marker = Marker(ns=namespace, id=index, type=Marker.SPHERE, action=Marker.ADD, color=color, frame_locked=True)
        marker.header.frame_id, marker.header.stamp = name, stamp
        marker.pose = Pose(
            position=Point(**dict(zip("xyz", centre.tolist(), strict=True))), orientation=Quaternion(x=x, y=y, z=z, w=w)
        )
        marker.scale = Vector3(**dict(zip("xyz", (2 * radii).tolist(), strict=True)))
        markers.append(marker)
    return MarkerArray(markers=markers)


def path_markers(paths: Mapping[str, Array], frame: str, stamp: Time) -> MarkerArray:
    """A line per way ``(N, 3)`` [m] in a frame, named after what goes along it."""
    markers = []
    for name, points in paths.items():
        marker = Marker(ns=name, type=Marker.LINE_STRIP, action=Marker.ADD, color=PLANNED)
        marker.header.frame_id, marker.header.stamp = frame, stamp
        marker.scale.x = _LINE
        marker.points = [Point(x=x, y=y, z=z) for x, y, z in points.tolist()]
        markers.append(marker)
    return MarkerArray(markers=markers)
