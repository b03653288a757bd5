"""Excitation: motions that a robot can make and that leave nothing unidentified.

Rooms: :mod:`~.motions` functions of time, :mod:`~.criteria` how much they tell, :mod:`~.constraints` what they keep,
:mod:`~.planning` the search, :mod:`~.intervals` motions by direction combinations, :mod:`~.plans` what is stored and
checked, :mod:`~.execution` what reaches the controller.
"""
