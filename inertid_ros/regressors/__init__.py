"""Equations between measurements and motion that are linear in the parameters of a robot."""
