"""What ``inertid excite`` does with motions.

- ``floating``: planning for free-floating robots.
- ``motion_output``: a motion as files and text.
"""
