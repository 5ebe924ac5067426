"""Fit the polynomials of `rvv_inductor/elementary.h`: minimax by Remez's exchange, coefficients rounded to float32.

    python3 scripts/fit_elementary.py

Needs mpmath, which the runtime images have. What is printed as error is that of the rounded polynomial in exact
arithmetic; the errors of evaluation come on top, and what both add up to is tested.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mpmath import cos, erf, erfc, exp, log, log1p, lu_solve, matrix, mp, mpf, pi, sqrt

Function = Callable[[mpf], mpf]
mp.prec = 160


@dataclass(frozen=True)
class Fit:
    """`target` approximated by a polynomial of `degree` in [low, high]; the error is weighed by `weight`."""

    name: str
    target: Function
    weight: Function
    low: mpf
    high: mpf
    degree: int


def rounded(value: mpf) -> float:
    """To the nearest float32."""
    return float(struct.unpack("f", struct.pack("f", float(value)))[0])


def value_at(coefficients: Sequence[float | mpf], x: mpf) -> mpf:
    """The polynomial, lowest coefficient first."""
    total = mpf(0)
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


def remez(fit: Fit) -> list[mpf]:
    """The coefficients whose largest weighed error is the least."""
    count = fit.degree + 1
    middle, half = (fit.low + fit.high) / 2, (fit.high - fit.low) / 2
    grid = [middle - half * cos(pi * i / 2000) for i in range(2001)]
    known = [(fit.target(x), fit.weight(x)) for x in grid]
    chosen = [round(2000 * i / count) for i in range(count + 1)]
    found: list[mpf] = []
    for _ in range(40):
        system, right = matrix(count + 1, count + 1), matrix(count + 1, 1)
        for i, point in enumerate(chosen):
            for j in range(count):
                system[i, j] = grid[point] ** j
            system[i, count] = (-1) ** i / known[point][1]
            right[i] = known[point][0]
        solved = lu_solve(system, right)
        found = list(solved[:count])
        errors = [(value - value_at(found, x)) * weight for x, (value, weight) in zip(grid, known, strict=True)]
        if max(abs(error) for error in errors) <= abs(solved[count]) * mpf("1.0001"):
            break
        # The next points: one extremum from each run of errors of one sign, the outermost dropped where there are more.
        peaks: list[int] = []
        for i, error in enumerate(errors):
            if not peaks or (error > 0) != (errors[peaks[-1]] > 0):
                peaks.append(i)
            elif abs(error) > abs(errors[peaks[-1]]):
                peaks[-1] = i
        while len(peaks) > count + 1:
            peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
        if len(peaks) < count + 1:
            raise ArithmeticError(f"{fit.name}: the errors do not alternate {count + 1} times")
        chosen = peaks
    return found


def fitted(fit: Fit) -> tuple[list[float], mpf]:
    """Rounded coefficients and the weighed error that they leave."""
    coefficients = [rounded(value) for value in remez(fit)]
    grid = [fit.low + (fit.high - fit.low) * i / 4000 for i in range(4001)]
    return coefficients, max(abs((fit.target(x) - value_at(coefficients, x)) * fit.weight(x)) for x in grid)


def fits() -> list[Fit]:
    """Every polynomial of the header. Removable singularities at 0 are kept out by a hair."""
    ln2 = log(mpf(2))
    tiny = mpf(2) ** -30

    def away(x: mpf) -> mpf:
        return x if abs(x) > tiny else tiny

    def exponential(x: mpf) -> mpf:
        return (exp(away(x)) - 1 - away(x)) / away(x) ** 2

    def logarithm(x: mpf) -> mpf:
        return (log1p(away(x)) - away(x) + away(x) ** 2 / 2) / away(x) ** 3

    def error_function(t: mpf) -> mpf:
        return erf(sqrt(away(abs(t)))) / sqrt(away(abs(t))) - 1

    reach = ln2 / 2 * mpf("1.00001")
    return [
        Fit("kExp", exponential, lambda x: x**2 / exp(x) + mpf("1e-12"), -reach, reach, 4),
        Fit("kExpFast", exponential, lambda x: x**2 / exp(x) + mpf("1e-12"), -reach, reach, 3),
        Fit(
            "kLog",
            logarithm,
            lambda x: away(x) ** 3 / log1p(away(x)) + mpf("1e-9"),
            sqrt(mpf("0.5")) - 1,
            sqrt(mpf(2)) - 1,
            7,
        ),
        Fit("kErf", error_function, lambda t: 1 / (1 + error_function(t)), mpf(0), mpf(1), 6),
        Fit("kErfcLog", lambda x: -log(erfc(x)), lambda x: erfc(x) / erf(x), mpf(1), mpf(4), 7),
    ]


def main() -> None:
    """Print every polynomial as it stands in the header."""
    for fit in fits():
        coefficients, error = fitted(fit)
        listed = ", ".join(f"{float.hex(value)}f" for value in coefficients)
        print(f"// degree {fit.degree}, error 2^{float(log(error, 2)):.2f}\n{fit.name}[] = {{{listed}}};")


if __name__ == "__main__":
    main()
