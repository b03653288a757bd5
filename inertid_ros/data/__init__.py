"""Recordings from messages and files, their checks, and their preparation to samples."""
