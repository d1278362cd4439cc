"""Numbers as text: exact ones, and rounded ones as people write them."""

import re
from collections.abc import Mapping
from decimal import Decimal
from numbers import Number

import numpy as np

MOST_COUNT = 10**9  # of anything that a configuration counts
CONSTANT = 0.99  # share of rows with one predicted class, from which a predictor is constant
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
