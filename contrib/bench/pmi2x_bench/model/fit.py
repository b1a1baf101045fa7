# SPDX-License-Identifier: BSD-3-Clause
"""Finds the costs of the simulator's model, and how far its times differ.

Costs: the logarithms of simulated and measured times come as close as they can
(Levenberg and Marquardt). A point that is far off counts less (Huber). Simulations, not a
formula, say how times depend on costs, so idle processors and queues are part of it.

Spread: the work of a node is a distribution whose logarithms are normal. Its deviation is
that of leaves of the tree, whose stamps are in the traces. Drift: steps that are the same
differ, and so do points from the model; both are in it."""

import collections
import math
import statistics

from .points import of_repeats, of_rounds, time_of
from .predict import NO_NOISE, Costs, Noise, all_of, sections, simulate

START = Costs(1e-5, 3e-5, 3e-5, 2e-5, 1e-5, 1e-9, 1e-10)
STEP = 0.2  # of a logarithm: to see what a cost does
ROUNDS = 8
STEPS = ROUNDS + 1  # of a fit, that are reported
LEAST = 1e-13  # seconds; of a byte, too
FAR = 0.2  # of a logarithm: from there a point counts less
BETTER = 1e-4  # of the sum of squares: less is the end
SPREAD_MOST, DRIFT_MOST = 100, 100  # percent

Fit = collections.namedtuple("Fit", "costs noise errors rounds repeats misfit")


def solve(matrix, right):
    """Of linear equations, by Gauss, with a pivot."""
    rows = [[*row, value] for row, value in zip(matrix, right)]
    n = len(rows)
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(i + 1, n):
            factor = rows[r][i] / rows[i][i]
            rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i])]
    found = [0.0] * n
    for i in reversed(range(n)):
        found[i] = (rows[i][n] - sum(rows[i][j] * found[j]
                                     for j in range(i + 1, n))) / rows[i][i]
    return found


def costs_at(logs):
    return Costs(*(max(math.exp(x), LEAST) for x in logs))


def weight(error):
    return 1.0 if abs(error) <= FAR else FAR / abs(error)


def cost_of(errors, weights):
    """Huber's: squares of small errors, and a line behind them."""
    return sum(w * (e * e if abs(e) <= FAR else FAR * (2 * abs(e) - FAR))
               for w, e in zip(weights, errors))


def move(errors, slopes, damping, weights):
    """How far each logarithm moves."""
    n = len(slopes)
    weights = [w * weight(e) for w, e in zip(weights, errors)]
    matrix = [[sum(w * a * b for w, a, b in zip(weights, slopes[i], slopes[j]))
               for j in range(n)] for i in range(n)]
    for i in range(n):
        matrix[i][i] += damping * (matrix[i][i] + 1e-3)
    right = [-sum(w * a * e for w, a, e in zip(weights, slopes[i], errors))
             for i in range(n)]
    return [max(-2.0, min(2.0, step)) for step in solve(matrix, right)]


def slopes_of(errors_at, logs, errors):
    """How errors change with each logarithm."""
    slopes = []
    for i in range(len(logs)):
        other = [x + STEP * (i == j) for j, x in enumerate(logs)]
        slopes.append([(b - a) / STEP for a, b in zip(errors, errors_at(costs_at(other)))])
    return slopes


def fit_costs(errors_at, weights, progress):
    """errors_at: logarithms of simulated times by measured ones, of costs."""
    logs, damping = [math.log(c) for c in START], 0.1
    errors = errors_at(costs_at(logs))
    # All costs together first: they may be those of another machine.
    shift = statistics.median(errors)
    logs = [x - shift for x in logs]
    errors = errors_at(costs_at(logs))
    for number in range(ROUNDS):
        progress(f"fitting the costs: round {number + 1}")
        before = cost_of(errors, weights)
        slopes = slopes_of(errors_at, logs, errors)
        for _ in range(4):
            steps = move(errors, slopes, damping, weights)
            other = [x + step for x, step in zip(logs, steps)]
            found = errors_at(costs_at(other))
            after = cost_of(found, weights)
            if after < before:
                break
            damping *= 4
        if before - after <= BETTER * before:
            break
        logs, errors, damping = other, found, damping / 4
    return costs_at(logs)


def weights_of(measured):
    """Points of many nodes count most: others are to be predicted that have still more."""
    most = max(p.nodes for p in measured)
    return [p.nodes / most for p in measured]


def errors_of(options, measured, costs, noise=NO_NOISE):
    machine = sections(costs, noise, options.cores)
    return [math.log(time / time_of(result)) for time, result in zip(
        all_of(lambda point: simulate(options, point, machine), measured), measured.values())]


# ---- distributions ----


def spread_of(results):
    """Percent: leaves show what their work takes, from the last rank's entry to the
    message, and from the result to the ranks."""
    found = [r.service for r in results if r.service]
    return min(round(100 * statistics.median(found)), SPREAD_MOST) if found else 0


def fit(options, measured, progress):
    """measured: {point: result}. progress: is called with what is done next."""
    costs = fit_costs(lambda c: errors_of(options, measured, c), weights_of(measured), progress)
    progress("fitting the deviations")
    results = list(measured.values())
    spread = spread_of(results)
    # Work that differs makes the slowest one count: costs are smaller for the same times.
    shift = statistics.median(errors_of(options, measured, costs, Noise(spread, 0)))
    costs = Costs(*(c * math.exp(-shift) for c in costs))
    errors = errors_of(options, measured, costs, Noise(spread, 0))
    misfit = 1.4826 * statistics.median(map(abs, errors))
    drift = math.hypot(misfit, of_repeats(results))
    noise = Noise(spread, min(round(100 * drift), DRIFT_MOST))
    return Fit(costs, noise, errors, of_rounds(results), of_repeats(results), misfit)


# ---- for people ----


def report(found, points):
    """Lines that say what was fitted, where, and how far measurements differ."""
    off = [abs(math.exp(e) - 1) for e in found.errors]
    c = found.costs
    nodes = sorted({p.nodes for p in points})
    return [
        f"fitted at {len(points)} points of {','.join(map(str, nodes))} nodes, where the model "
        f"is {100 * statistics.mean(off):.0f} % off in the mean, {100 * max(off):.0f} % at most",
        f"costs: {c.step * 1e6:.1f} us a step, {c.message * 1e6:.1f} us a message, "
        f"{c.resume * 1e6:.1f} us a node that was idle, {c.rank * 1e6:.1f} us a rank, "
        f"{c.answer * 1e6:.1f} us an answer of a ring, {c.byte * 1e9:.3f} ns a byte, "
        f"{c.read * 1e9:.3f} ns a byte that a rank reads",
        f"deviations: {100 * found.rounds:.0f} % of rounds in a step, "
        f"{100 * found.repeats:.0f} % of equal steps, {100 * found.misfit:.0f} % of points from "
        f"the model; so the work of a node has {found.noise.spread} % (spread, of leaves of "
        f"the tree), all work of a run {found.noise.drift} % (drift)"]
