"""Direction combinations: cycloidal intervals in each of which every joint moves one way ([Naveen2019]_ sec. 5).

- ``interval_motion``: directions, and the motion that start and range per interval make of them.
- ``pruning``: which intervals to keep.
- ``interval_planner``: the search.
- ``fixed_base``: for robots on a fixed base, whose joint torques are measured.
- ``floating_base``: for free-floating robots with reaction wheels, whose momentum is conserved.

May import all folders before it, ``planning`` the last of them.
"""
