"""One road from rows to a verdict, to be read in this order.

``groups`` (codes with their names), ``quantities`` (what is measured: means of row values, or
other functions), ``rows`` and ``counts`` (what they are measured of; ``partly``: of some labels),
``forms`` and ``gaps`` (how groups are compared), ``metrics`` (names), ``estimate`` and
``variance`` (values with components of variance), ``rates`` (intervals of gaps), ``verdicts``
(changes).
"""
