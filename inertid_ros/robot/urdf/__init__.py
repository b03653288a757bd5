"""URDF text; imports ``core``, ``config`` and ``robot.bodies``.

- ``parsing``: text that passed all checks.
- ``joints``: which joints move or are locked, their limits and friction.
- ``xml_edits``: changes of single elements that leave every other byte as it is.
- ``changes``: what differs between two URDFs of one robot.
- ``denavit_hartenberg``: URDF from Denavit-Hartenberg tables.
"""
