"""What everything stands on: arrays, errors, findings, formats, files that appear whole, workers."""
