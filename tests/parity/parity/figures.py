"""Tests of counts: two samples of one distribution?"""

import math


def upper_gamma(a, x):
    """The regularised upper incomplete gamma function Q(a, x)."""
    if x <= 0:
        return 1.0
    scale = math.exp(-x + a * math.log(x) - math.lgamma(a))
    if x < a + 1:
        term = total = 1.0 / a
        n = a
        while abs(term) > abs(total) * 1e-15:
            n += 1
            term *= x / n
            total += term
        return max(0.0, 1.0 - total * scale)
    tiny = 1e-300
    b, c = x + 1 - a, 1 / tiny
    d = 1 / b
    h = d
    for i in range(1, 10000):
        an = -i * (i - a)
        b += 2
        d = 1 / (an * d + b if abs(an * d + b) > tiny else tiny)
        c = b + an / c if abs(b + an / c) > tiny else tiny
        h *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return scale * h


def chi_square(statistic, freedom):
    """Probability of so large a statistic."""
    return upper_gamma(freedom / 2, statistic / 2) if freedom > 0 else 1.0


def binomial_tail(hits, total, share):
    """P(at least `hits` of `total`), each with probability `share`."""
    if hits <= 0:
        return 1.0
    logs = math.log(share), math.log1p(-share)
    terms = [
        math.exp(
            math.lgamma(total + 1) - math.lgamma(k + 1) - math.lgamma(total - k + 1) + k * logs[0] + (total - k) * logs[1]
        )
        for k in range(hits, total + 1)
    ]
    return min(1.0, math.fsum(terms))


def same_shares(left, right):
    """The least p-value, and how many tests it is the least of, that two tables of counts have the same shares.

    Chi-square over the cells that expect five or more on both sides; an exact binomial test, given the cell's sum, for
    each of the others."""
    sizes = sum(left.values()), sum(right.values())
    part = sizes[0] / (sizes[0] + sizes[1])
    values, statistic, cells = [], 0.0, 0
    rest = [0, 0]
    for key in sorted(set(left) | set(right)):
        pair = left.get(key, 0), right.get(key, 0)
        total = sum(pair)
        expected = total * part, total * (1 - part)
        if min(expected) >= 5:
            statistic += sum((got - want) ** 2 / want for got, want in zip(pair, expected))
            cells += 1
        else:
            rest = [rest[0] + pair[0], rest[1] + pair[1]]
            tails = binomial_tail(pair[0], total, part), binomial_tail(pair[1], total, 1 - part)
            values.append(min(1.0, 2 * min(tails)))
    total = sum(rest)
    if total * min(part, 1 - part) >= 5:
        expected = total * part, total * (1 - part)
        statistic += sum((got - want) ** 2 / want for got, want in zip(rest, expected))
        cells += 1
    if cells > 1:
        values.append(chi_square(statistic, cells - 1))
    return min(values, default=1.0), max(1, len(values))
