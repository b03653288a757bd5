"""Limits of motions, and proofs that a motion keeps them between samples too.

- ``motion_limits``: limits of position, velocity, acceleration and effort per joint.
- ``constraint``: the interface of all other constraints, and what they share.
- ``continuous_time``: proof that a function of a motion is not negative anywhere.
- ``wrench_rates``: bounds of the rates of efforts and of the reaction at the base, for such proofs.

May import ``motions``.
"""
