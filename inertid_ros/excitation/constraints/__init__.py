"""Constraints: what a motion must keep beside its limits, and the proof that it does.

- ``effort``: joint efforts by the prior model.
- ``collision``: distances of links from one another, from obstacles and from the floor.
- ``balance``: centre of mass, zero-moment point and normal force.
- ``motion_constraints``: the constraints that options name, and what a plan makes of them.

May import ``motions``, ``limits`` and ``plans``.
"""
