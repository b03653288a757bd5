"""Results and planned motions as files and HTML pages; other packages do the analysis."""
