"""Planning: the search for motions that are linear in their parameters.

- ``planning_problem``: the objective as a function of a motion's shape, and its gradient.
- ``feasible_size``: the size at which a shape just fits its limits.
- ``random_starts``: random shapes to begin with.
- ``descent``: one descent, and the finished plan.
- ``parallel_descents``: several descents in processes of their own.
- ``reduced_excitation``: fewer parameters where not all can be excited.
- ``optimize``: the whole search.

May import ``motions``, ``limits``, ``plans``, ``constraints`` and ``criteria``.
"""
