"""Numbers as text: exact, rounded as people write them, or as their intervals justify."""

import re
from collections.abc import Mapping
from decimal import Decimal
from numbers import Number

import numpy as np

MOST_COUNT = 10**9  # of anything that a configuration counts
CONSTANT = 0.99  # share of rows with one predicted class, from which a predictor is constant
PLAIN = 3  # decimals of a value without an interval
MOST = 4
LEAST_P = 1e-16  # below, tails of the normal distribution have lost their digits
BROAD = 3.0  # a half-width of more than this in a decimal place needs no further one
LARGE = 10.0  # value from which on fewer than two decimals may do
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?")


def as_decimal(text: str) -> Decimal | None:
    """The number that a text says, exactly; None of other texts.

    >>> as_decimal("20240624"), as_decimal(" 1e3 "), as_decimal("spring")
    (Decimal('20240624'), Decimal('1E+3'), None)
    """
    written = text.strip()
    return Decimal(written) if NUMBER.fullmatch(written) else None


def exact(number: float | Number | np.number | Decimal) -> str:
    """The shortest text that says exactly this number; a whole one has no decimal point.

    >>> exact(10000010.0), exact(78.5), exact(1 / 3), exact(1e-5), exact(Decimal("1.50"))
    ('10000010', '78.5', '0.3333333333333333', '1e-05', '1.5')
    """
    text = f"{number:f}" if isinstance(number, Decimal) else str(number or 0)  # -0.0 is 0
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def written(number: float, digits: int = 4) -> str:
    """A number rounded to some digits, as people write it: whole places stay, no exponents.

    >>> written(150.4, 2), written(12345.6), written(0.25), written(0.0000123, 2)
    ('150', '12346', '0.25', '0.000012')
    """
    if not np.isfinite(number):
        return str(number)
    if abs(number) >= 10 ** (digits - 1):
        return f"{number:.0f}"
    return f"{Decimal(f'{number:.{digits}g}'):f}"


def counted(counts: Mapping[str, float]) -> str:
    """Counts with their nouns, which are given as plurals.

    >>> counted({"datasets": 2, "rows": 1}), counted({"rows": 12000})
    ('2 datasets, 1 row', '12,000 rows')
    """
    return ", ".join(f"{n:,.0f} {name if n != 1 else name[:-1]}" for name, n in counts.items())


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
