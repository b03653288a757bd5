"""Formulas of signals in a configuration: ``sin(q)``, ``abs(v)*v``, ``q["elbow"]**2``.

A formula is parsed once and evaluated by a table of allowed operations, never executed as code.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # configurations are read, and their formulas checked, without NumPy
    from .arrays import Array

_MAX_FORMULA_LENGTH, _MAX_FORMULA_DEPTH = 4000, 100  # characters, operations within operations
_MAX_CONSTANT = 1e300
_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow, ast.UAdd: operator.pos, ast.USub: operator.neg,
}
FUNCTIONS = {
    "sin": ("sin", 1), "cos": ("cos", 1), "tan": ("tan", 1), "exp": ("exp", 1), "log": ("log", 1), "sqrt": ("sqrt", 1),
    "abs": ("abs", 1), "sign": ("sign", 1), "tanh": ("tanh", 1), "min": ("minimum", 2), "max": ("maximum", 2),
}
"""Functions in formulas: name, mapped to its NumPy name and its number of arguments."""
_DERIVATIVES = {
    "sin": "cos({0})", "cos": "-sin({0})", "tan": "1/cos({0})**2", "exp": "exp({0})", "log": "1/({0})",
    "sqrt": "0.5/sqrt({0})", "tanh": "1 - tanh({0})**2",
}
CONSTANTS = {"pi": math.pi}


class Expression:
    """Formula of named signals, evaluated at each of their samples.

    Parameters
    ----------
    text : numbers, ``pi``, names of signals, signals of another joint as ``signal["joint"]``, ``+ - * / **``, brackets
        and :data:`FUNCTIONS`.
    signals : names of the allowed signals.

    Attributes
    ----------
    used : pairs of signal and joint in the formula; an empty joint stands for the joint that the formula belongs to.

    Raises
    ------
    ValueError
        The text is too long, or is not such a formula.
    """

    def __init__(self, text: str, signals: tuple[str, ...]) -> None:
        self.text, self.signals = text, signals
        self.used: set[tuple[str, str]] = set()
        try:
            if len(text) > _MAX_FORMULA_LENGTH:
                raise ValueError(f"is longer than {_MAX_FORMULA_LENGTH} characters")
            self._check(self._tree, _MAX_FORMULA_DEPTH)
        except (SyntaxError, RecursionError, MemoryError):
            raise ValueError(f"'{text[:100]}' is not a formula; write for example sin(q) or abs(v)*v") from None
        except ValueError as error:
            raise ValueError(f"'{text[:100]}' {error}") from None

    def __call__(self, signals: Mapping[str, Array], others: Mapping[str, Mapping[str, Array]]) -> Array:
        """Values ``(N,)`` from ``signals[name]`` of the joint and ``others[name][joint]`` of others, ``(N,)`` each."""
        import numpy as np

        with np.errstate(all="ignore"):
            value = self._value(self._tree, signals, others)
        return np.broadcast_to(np.asarray(value, dtype=float), np.shape(next(iter(signals.values()))))

    def derivative(self, signal: str, joint: str) -> str:
        """Formula of the partial derivative by ``signal["joint"]``; ``0`` if the formula does not depend on it.

        Raises ValueError: the formula has a function without a smooth derivative, such as ``abs``.
        """
        return ast.unparse(ast.parse(_derivative(self._tree, signal, joint), mode="eval"))

    @cached_property
    def _tree(self) -> ast.expr:
        return ast.parse(self.text.strip(), mode="eval").body

    def _check(self, node: ast.AST, depth: int) -> None:
        """Raise ValueError for a node that is not allowed; collect the signals."""
        if depth == 0:
            raise ValueError("is nested too deeply")
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                if abs(number) > _MAX_CONSTANT:
                    raise ValueError("holds a number that is too large")
            case ast.Name(id=name):
                if name not in CONSTANTS:
                    self._use(name, "")
            case ast.Subscript(value=ast.Name(id=signal), slice=ast.Constant(value=str() as joint)):
                self._use(signal, joint)
            case ast.Subscript(value=ast.Name()):
                raise ValueError('names another joint without quotes; write q["joint"]')
            case _:
                for part in _operation(node)[1]:
                    self._check(part, depth - 1)

    def _use(self, signal: str, joint: str) -> None:
        if signal not in self.signals:
            raise ValueError(f"uses {signal}; choose from {', '.join((*self.signals, *CONSTANTS))}")
        self.used.add((signal, joint))

    def _value(self, node: ast.expr, signals: Mapping[str, Array], others: Mapping[str, Mapping[str, Array]]) -> Any:
        import numpy as np

        match node:
            case ast.Constant(value=int() | float() as number):
                return np.float64(number)  # overflows to infinity like an array; a float would raise
            case ast.Name(id=name):
                return np.float64(CONSTANTS[name]) if name in CONSTANTS else signals[name]
            case ast.Subscript(value=ast.Name(id=signal), slice=ast.Constant(value=str() as joint)):
                return others[signal][joint]
        operation, parts = _operation(node)
        function = getattr(np, operation) if isinstance(operation, str) else operation
        return function(*(self._value(part, signals, others) for part in parts))


def _operation(node: ast.AST) -> tuple[Callable[..., Any] | str, list[ast.expr]]:
    """Function of an operation (or the name of a NumPy function), and operands; ValueError if it is not allowed."""
    match node:
        case ast.BinOp(left=left, op=symbol, right=right) if type(symbol) in _OPERATORS:
            return _OPERATORS[type(symbol)], [left, right]
        case ast.UnaryOp(op=symbol, operand=operand) if type(symbol) in _OPERATORS:
            return _OPERATORS[type(symbol)], [operand]
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            if name not in FUNCTIONS:
                raise ValueError(f"calls {name}; choose from {', '.join(FUNCTIONS)}")
            numpy_name, count = FUNCTIONS[name]
            if len(arguments) != count:
                raise ValueError(f"gives {len(arguments)} values to {name}")
            return numpy_name, arguments
    raise ValueError("holds more than numbers, signals, + - * / ** and functions")


def _derivative(node: ast.expr, signal: str, joint: str) -> str:
    """Text of the partial derivative, without terms that are zero and factors that are one."""
    match node:
        case ast.Constant() | ast.Name():
            return "0"
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=other)):
            return "1" if (name, other) == (signal, joint) else "0"
    parts = _operation(node)[1]
    texts, slopes = [ast.unparse(part) for part in parts], [_derivative(part, signal, joint) for part in parts]
    if not any(slope != "0" for slope in slopes):
        return "0"
    match node:
        case ast.UnaryOp(op=ast.UAdd()) | ast.BinOp(op=ast.Add()):
            return _sum(*slopes)
        case ast.UnaryOp(op=ast.USub()):
            return _product("-1", slopes[0])
        case ast.BinOp(op=ast.Sub()):
            return _sum(slopes[0], _product("-1", slopes[1]))
        case ast.BinOp(op=ast.Mult()):
            return _sum(_product(slopes[0], texts[1]), _product(texts[0], slopes[1]))
        case ast.BinOp(op=ast.Div()):
            return _sum(
                _product(slopes[0], f"1/({texts[1]})"), _product("-1", texts[0], slopes[1], f"1/({texts[1]})**2"))
        case ast.BinOp(op=ast.Pow()):
            base, exponent = texts
            lower = f"({base})**({exponent} - 1)" if exponent != "2" else base
            return _sum(
                _product(exponent, lower, slopes[0]), _product(f"({base})**({exponent})", f"log({base})", slopes[1]))
        case ast.Call(func=ast.Name(id=name)) if name in _DERIVATIVES:
            return _product(_DERIVATIVES[name].format(*texts), slopes[0])
    raise ValueError(f"'{ast.unparse(node)}' has no smooth derivative; use {', '.join(_DERIVATIVES)}")


def _sum(*terms: str) -> str:
    kept = [f"({term})" for term in terms if term != "0"]
    return " + ".join(kept) or "0"


def _product(*factors: str) -> str:
    kept = [f"({factor})" for factor in factors if factor != "1"]
    return "0" if "0" in factors else "*".join(kept) or "1"
