"""How options are defined and filled; the options themselves are in the files of ``config``.

* ``option_fields``: fields of an option class, and the list of all options of one
* ``structuring``: option classes from nested mappings, with errors of one line
* ``former_syntax``: the strings of older configurations, for the error that shows their new form

It imports ``core`` alone.
"""
