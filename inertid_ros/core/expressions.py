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
    ast.Pow: operator.pow, ast.UAdd: operator.pos, ast.USub: operator.neg}
FUNCTIONS = {
    "sin": ("sin", 1), "cos": ("cos", 1), "tan": ("tan", 1), "exp": ("exp", 1), "log": ("log", 1), "sqrt": ("sqrt", 1),
    "abs": ("abs", 1), "sign": ("sign", 1), "tanh": ("tanh", 1), "min": ("minimum", 2), "max": ("maximum", 2)}
"""Functions in formulas: name, mapped to its NumPy name and its number of arguments."""
_SLOPES: dict[type | str, tuple[str, ...]] = {
    ast.Add: ("1", "1"), ast.Sub: ("1", "-1"), ast.Mult: ("{1}", "{0}"), ast.Div: ("1/({1})", "-({0})/({1})**2"),
    ast.Pow: ("({1})*({0})**({1} - 1)", "({0})**({1})*log({0})"), ast.UAdd: ("1",), ast.USub: ("-1",),
    "sin": ("cos({0})",), "cos": ("-sin({0})",), "tan": ("1/cos({0})**2",), "exp": ("exp({0})",), "log": ("1/({0})",),
    "sqrt": ("0.5/sqrt({0})",), "tanh": ("1 - tanh({0})**2",),
}
"""Derivative of each smooth operation by each of its operands ``{0}`` and ``{1}``."""
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
    """Text of the partial derivative by the chain rule, without terms that are zero and factors that are one."""
    match node:
        case ast.Constant() | ast.Name():
            return "0"
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=other)):
            return "1" if (name, other) == (signal, joint) else "0"
    parts = _operation(node)[1]
    inner = [_derivative(part, signal, joint) for part in parts]
    outer = _SLOPES.get(node.func.id if isinstance(node, ast.Call) else type(node.op), ())  # type: ignore[attr-defined]
    if not outer and any(slope != "0" for slope in inner):
        raise ValueError(f"'{ast.unparse(node)}' has no smooth derivative; write a smooth formula")
    texts = [ast.unparse(part) for part in parts]
    terms = [[rule.format(*texts), slope] for rule, slope in zip(outer, inner, strict=False) if slope != "0"]
    return " + ".join("*".join(f"({factor})" for factor in term if factor != "1") or "1" for term in terms) or "0"
