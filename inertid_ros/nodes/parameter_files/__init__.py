"""Parameter files and the reference of all parameters, made from the option classes of the nodes.

``python -m inertid_ros.nodes.parameter_files config --docs docs/reference`` writes both.

* ``node_options``: the options of every node
* ``yaml_text``: the files in ``config``
* ``reference_pages``: the pages in ``docs/reference``

It imports the parameters of all nodes, and no ROS.
"""
