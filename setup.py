"""Lets tools that know nothing of pyproject.toml install the library; everything is declared there."""

from setuptools import setup

setup()
