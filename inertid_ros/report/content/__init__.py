"""Parts of the content of ``report.json``, which :mod:`inertid_ros.report.report_content` puts together."""
