"""Values with as many decimals as their intervals justify."""

import numpy as np

PLAIN = 3  # decimals of a value without an interval
MOST = 4
LEAST_P = 1e-16  # below, tails of the normal distribution have lost their digits
BROAD = 3.0  # a half-width of more than this in a decimal place needs no further one
LARGE = 10.0  # value from which on fewer than two decimals may do


def number(value: float, low: float = np.nan, high: float = np.nan, sign: str = "") -> str:
    """The value alone; ``sign`` is "+" for changes.

    It has as many decimals as let half of its interval have one or two digits.

    >>> number(0.5, 0.41, 0.63), number(0.5, 0.512, 0.541), number(0.5, 0.5131, 0.5162)
    ('0.50', '0.500', '0.5000')
    >>> number(1234.5, 1e3, 2e3), number(0.5)
    ('1,234', '0.500')
    """
    if np.isnan(value):
        return "n/a"
    half, decimals = (high - low) / 2, PLAIN
    if np.isfinite(half) and half > 0:
        least = 0 if max(abs(low), abs(high)) >= LARGE else 2
        decimals = int(np.clip(np.ceil(-np.log10(half / BROAD)), least, MOST))
    text = f"{value:{sign},.{decimals}f}"
    return text if text.strip("+-0.,") else text.lstrip("+-")


def p_value(p: float) -> str:
    """A p-value as a sentence writes it.

    >>> p_value(0.0312), p_value(0.0)
    ('p 0.031', 'p < 1e-16')
    """
    return f"p {p:.2g}" if p >= LEAST_P else f"p < {LEAST_P:g}"


def within(low: float, high: float, sign: str = "") -> str:
    """The interval in brackets with a space before; "" without one."""
    if np.isnan(low):
        return ""
    if np.isnan(high):
        return f" (at least {number(low, sign=sign)})"
    return f" ({number(low, low, high, sign)} to {number(high, low, high, sign)})"


def estimate(value: float, low: float, high: float, sign: str = "") -> str:
    """The value with its interval; n/a without a value."""
    return number(value, low, high, sign) + ("" if np.isnan(value) else within(low, high, sign))
