"""Recordings in files: bags and .npz in and out, and bags that are written while a robot moves."""
