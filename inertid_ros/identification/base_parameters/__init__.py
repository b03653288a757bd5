"""Base parameters: the combinations of parameters that motion can excite, numerically and in closed form."""
