"""Motions: functions of time with a few parameters, and the quintics that plans are made of."""
