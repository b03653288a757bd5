"""Results for people: tables, plots, HTML."""
