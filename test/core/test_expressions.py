"""Formulas of a configuration: what they compute, and that nothing else gets in."""

import numpy as np
import pytest

from inertid_ros.core.expressions import Expression

SIGNALS = ("q", "v", "load")


def test_values_are_those_of_the_formula():
    rng = np.random.default_rng(0)
    q, v, other = rng.normal(size=(3, 20))
    own, others = {"q": q, "v": v, "load": v}, {"q": {"elbow": other}}
    for text, expected in {
        "sin(2*q + pi/4)": np.sin(2 * q + np.pi / 4),
        "-abs(v)*v": -np.abs(v) * v,
        "q**2/(1 + v**2)": q**2 / (1 + v**2),
        'cos(q + q["elbow"])': np.cos(q + other),
        "max(q, 0.1) - min(v, 0)": np.maximum(q, 0.1) - np.minimum(v, 0),
        "3": np.full(20, 3.0),
    }.items():
        np.testing.assert_allclose(Expression(text, SIGNALS)(own, others), expected, rtol=1e-15)
    assert Expression('q + load["elbow"]', SIGNALS).used == {("q", ""), ("load", "elbow")}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("__import__('os').system('true')", "more than numbers"),
        ("open('x')", "calls open"),
        ("q.__class__", "more than numbers"),
        ("[q for q in v]", "more than numbers"),
        ("lambda: q", "more than numbers"),
        ("q if v else 1", "more than numbers"),
        ("a*q", "uses a"),
        ("sin(q, v)", "gives 2 values to sin"),
        ("q[elbow]", "without quotes"),
        ("q +", "is not a formula"),
        ("q = 1", "is not a formula"),
        ("", "is not a formula"),
        ("'q'", "more than numbers"),
        ("True", "more than numbers"),
        ("1+" * 2000 + "1", "longer than"),
        ("-" * 150 + "q", "nested too deeply"),
        ("(" * 240 + "q" + ")" * 240, "is not a formula"),
    ],
)
def test_anything_else_is_refused(text, reason):
    with pytest.raises(ValueError, match=reason):
        Expression(text, SIGNALS)


@pytest.mark.parametrize(
    "text",
    [
        'q["a"]',
        '-q["a"]*q["b"] + 3',
        'q["a"]**3/(2 + cos(q["b"])) - 1/q["a"]**2',
        'sin(q["a"])*exp(-q["b"]) + tan(q["b"]/3)',
        'sqrt(1 + q["a"]**2)*log(2 + q["b"]**2) + tanh(q["a"]*q["b"])',
        '(2 + sin(q["a"]))**q["b"] + 2**q["a"] + q["b"]**0.5 + pi*+q["b"]',
    ],
)
def test_derivatives_are_those_of_complex_steps(text):
    """First and second, at positive positions."""
    rng = np.random.default_rng(0)
    names = {name: getattr(np, name) for name in ("sin", "cos", "tan", "exp", "log", "sqrt", "tanh", "pi")}
    q = dict(zip("ab", rng.uniform(0.3, 1.5, size=(2, 20)), strict=True))

    def slope(formula, joint):
        shifted = {name: value + (1e-30j if name == joint else 0) for name, value in q.items()}
        return np.broadcast_to(np.imag(eval(formula, {}, {**names, "q": shifted})) / 1e-30, 20)  # noqa: S307

    for joint in "ab":
        first = Expression(text, ("q",)).derivative("q", joint)
        values = Expression(first, ("q",))({"q": q["a"]}, {"q": q})
        np.testing.assert_allclose(values, slope(text, joint), rtol=1e-12, atol=1e-14)
        for other in "ab":
            second = Expression(first, ("q",)).derivative("q", other)
            values = Expression(second, ("q",))({"q": q["a"]}, {"q": q})
            np.testing.assert_allclose(values, slope(first, other), rtol=1e-12, atol=1e-14)
    assert Expression('q["a"] + abs(q["b"])', ("q",)).derivative("q", "a") == "1"
    with pytest.raises(ValueError, match="no smooth derivative"):
        Expression('q["a"] + abs(q["b"])', ("q",)).derivative("q", "b")
