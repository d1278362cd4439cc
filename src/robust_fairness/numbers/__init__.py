"""One road from rows to a verdict, to be read in this order.

``groups`` (codes with their names), ``quantities`` (what is measured: means of row values, or
other functions), ``counts`` (what they are measured of: counts or rows; ``partly``: of some
labels), ``gaps`` (how groups are compared), ``metrics`` (names), ``estimate`` (values with
components of variance), ``rates`` and ``intervals`` (of gaps), ``verdicts`` (changes).
"""
