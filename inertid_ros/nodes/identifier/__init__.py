"""The identifier: recordings in, validated parameters out, latched for controllers."""
