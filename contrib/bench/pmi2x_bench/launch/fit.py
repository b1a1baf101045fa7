# SPDX-License-Identifier: BSD-3-Clause
"""How a time grows: a + b*log2 N + c*N by least squares."""

import collections
import math

SIZES_LEAST = 4  # one more than there are coefficients: a residual says something

# residual: root of the mean square of what the fit leaves, in seconds.
Fit = collections.namedtuple("Fit", "a b c residual low high count mean")
TERMS = {"b": "b*log2 N", "c": "c*N"}
BAD = 0.15  # residual over mean: the time does not grow like that
FLAT = 0.1  # share of the time at the largest N: growth below it is called none


def solve(matrix, right):
    """Gauss with pivots; None when the equations do not decide."""
    size = len(right)
    rows = [list(row) + [value] for row, value in zip(matrix, right)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda r: abs(rows[r][i]))
        if abs(rows[pivot][i]) < 1e-12:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(size):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [x - factor * y for x, y in zip(rows[r], rows[i])]
    return [rows[i][size] / rows[i][i] for i in range(size)]


def least_squares(columns, values):
    """Coefficients of the columns; scaled, so that sizes do not matter."""
    scales = [max(map(abs, column)) or 1.0 for column in columns]
    scaled = [[x / s for x in column] for column, s in zip(columns, scales)]
    normal = [
        [sum(x * y for x, y in zip(one, other)) for other in scaled]
        for one in scaled
    ]
    right = [sum(x * y for x, y in zip(one, values)) for one in scaled]
    found = solve(normal, right)
    return found and [x / s for x, s in zip(found, scales)]


def fit(points):
    """Fit (N, seconds); None if there are too few sizes."""
    sizes = [size for size, _ in points]
    values = [value for _, value in points]
    if len(set(sizes)) < SIZES_LEAST:
        return None
    columns = [[1.0] * len(sizes), [math.log2(n) for n in sizes]]
    columns.append([float(n) for n in sizes])
    found = least_squares(columns, values)
    if not found:
        return None
    a, b, c = found
    rest = [t - (a + b * math.log2(n) + c * n) for n, t in points]
    residual = math.sqrt(sum(r * r for r in rest) / len(rest))
    mean = sum(values) / len(values)
    return Fit(a, b, c, residual, min(sizes), max(sizes), len(set(sizes)), mean)


def at(found, size):
    return found.a + found.b * math.log2(size) + found.c * size


def growth(found):
    """The time that each term adds from the smallest to the largest N, in seconds."""
    return {
        "b": found.b * math.log2(found.high / found.low),
        "c": found.c * (found.high - found.low),
    }


def verdict(found):
    """Which term dominates the growth, and whether to believe it."""
    text = dominant(found)
    return f"{text}, but fits badly" if found.residual > BAD * found.mean else text


def dominant(found):
    parts = growth(found)
    total = sum(parts.values())
    if abs(total) < FLAT * abs(at(found, found.high)):
        return "hardly grows"
    if total < 0:
        return "shrinks"
    most = max(parts, key=parts.get)
    other = min(parts, key=parts.get)
    if parts[other] < 0:
        sign = "flattened" if other == "c" else "steepened"
        return f"{TERMS[most]}, {sign} by a negative {TERMS[other]}"
    return f"{TERMS[most]}: {100 * parts[most] / total:.0f} % of the growth"
