"""Recordings in files: read bags, .npz files and tables; write .npz files and bags, also while a robot moves."""
