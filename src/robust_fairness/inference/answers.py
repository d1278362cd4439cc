"""The answers that every page, console and summary begins with: a closed list of sentences.

Each has at most fifteen words, where a name counts as one. Unknown is never worded as good news:
"Yes" means that every comparison held within its margin or shrank, "Mostly" that nine of ten did.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from robust_fairness.numbers.variance import FEWEST_REFITS

MOSTLY = 0.9  # share of comparisons that held from which on the answer is "Mostly"
NOTHING = "Unknown: no gap was measured both at home and in another test set"
TWICE = 2  # as much data, from which on one digit says how much
NAMED = 2  # test sets or methods that a sentence names
FINE = ("held", "shrank")
# Columns that a sentence is made of.
USED = [
    "data", "attribute", "place", "state", "change", "bound", "margin", "limit", "group", "have",
    "needed",
]  # fmt: skip
# States that are compared, the worst first.
RANKS = {
    "grew": 0, "reversed": 1, "changed": 2, "not estimable": 3, "inconclusive": 3, "held": 4,
    "shrank": 5,
}  # fmt: skip
SYMBOLS = {
    "grew": "▲", "shrank": "▼", "reversed": "⇄", "changed": "≠", "held": "=", "inconclusive": "?",
    "not estimable": "∅", "trivial": "T", "missing": "–",
}  # fmt: skip


def points(value: float) -> str:
    """A fraction in percentage points.

    >>> points(0.284)
    '28'
    """
    return "–" if pd.isna(value) else f"{100 * value:.0f}"


def signed(value: float) -> str:
    """A change of a fraction in percentage points, with its sign; 0 has none."""
    text = f"{100 * value:+.0f}".replace("-", "−")
    return "–" if pd.isna(value) else "0" if text in ("+0", "−0") else text


def in_points(value: float) -> str:
    """A fraction in percentage points, with the unit."""
    return f"{points(value)} point{'' if points(value) == '1' else 's'}"


def worst_first(pairs: pd.DataFrame) -> pd.DataFrame:
    """The comparisons in order of what is worst: growth, other changes, what is unknown, the rest.

    Args:
        pairs: rows with a state, a change and the bound of a change; others are left out.
    """
    known = pairs[pairs["state"].isin(list(RANKS))].reset_index(drop=True)
    rank = known["state"].map(RANKS)
    size = known["bound"].where(rank == RANKS["inconclusive"], known["change"].abs()).fillna(np.inf)
    order = np.lexsort((-size.to_numpy(np.float64), rank))
    return known.iloc[order]


def answer(pairs: pd.DataFrame, amount: Callable[[float], str] = in_points) -> str:
    """Whether gaps stayed what they are at home, in one sentence of at most fifteen words.

    Args:
        pairs: comparisons of a gap at home and in a test set, by a model; columns data, attribute,
            place (name of the test set), state, change, bound, margin, limit, group, have and
            needed (optional), see ``verdicts.tested``. States may also be ``trivial`` and
            ``missing``, which do not count.
        amount: how a size is written; by default in percentage points.

    Returns:
        A sentence without its full stop.

    Examples:
        >>> pairs = pd.DataFrame([
        ...     {"data": "acs", "attribute": "race", "place": place, "state": state,
        ...      "change": change, "bound": 0.3, "margin": 0.05, "limit": "refits", "group": "",
        ...      "have": 5}
        ...     for place, state, change in
        ...     [("NM", "grew", 0.2), ("SD", "grew", 0.28), ("WV", "held", 0)]])
        >>> answer(pairs)
        'No: the gap by race grew in SD and NM, by up to 28 points'
        >>> answer(pairs[pairs["state"] == "held"])
        'Yes: the gap by race held within 5 points in WV'
    """
    known = worst_first(pairs.reindex(columns=USED))
    if known.empty:
        return _nothing(pairs)
    of = {name: known[known["state"] == name] for name in RANKS}
    fine = known[known["state"].isin(FINE)]
    if len(fine) == len(known):
        return f"Yes: {_gap(known)} {_held(fine, amount)} {_everywhere(known)}"
    if len(fine) >= MOSTLY * len(known):
        verbs = " or ".join(name for name in FINE if len(of[name]))
        return f"Mostly: {verbs} in {_of(fine, known)}; {_exceptions(of, amount)}"
    if len(of["grew"]):
        return f"No: {_grew(of['grew'], known, amount)}"
    if len(of["reversed"]):
        return f"No: {_gap(of['reversed'])} reversed {_places(of['reversed'])}"
    return f"Unknown{_unknown(of, fine, known, amount)}"


def _unknown(
    of: dict[str, pd.DataFrame],
    fine: pd.DataFrame,
    known: pd.DataFrame,
    amount: Callable[[float], str],
) -> str:
    """What is unknown, and how large changes may be."""
    bounded = of["inconclusive"]
    possible = f"changes up to {amount(bounded['bound'].max())} are possible"
    if len(of["changed"]):
        rest = possible if len(bounded) else "whether the gap grew is unclear"
        return f": a difference changed {_places(of['changed'])}; {rest}"
    if len(fine):
        unknown = known.drop(fine.index)
        return f" in {_of(unknown, known)}{f': {possible}' if len(bounded) else ''}"
    if not len(bounded):
        return f": {_gap(known)} cannot be estimated{_few(known.iloc[0])}"
    return f": {possible}{_few(bounded.iloc[0])}"


def _nothing(pairs: pd.DataFrame) -> str:
    """The answer where no comparison counts."""
    if (pairs["state"] == "trivial").any():
        return "Unknown: every model predicts one class or no better than that"
    if len(pairs):
        return "Unknown: every model failed"
    return NOTHING


def _gap(pairs: pd.DataFrame) -> str:
    """The gap of some comparisons, or that there are several."""
    names = pairs[["data", "attribute"]].drop_duplicates()
    if len(names) > 1:
        return "every gap"
    attribute = names["attribute"].iloc[0]
    return f"the gap by {attribute}" if attribute else "the gap"


def _held(fine: pd.DataFrame, amount: Callable[[float], str]) -> str:
    margins = sorted({*fine.loc[fine["state"] == "held", "margin"]})
    if not margins:
        return "shrank"
    within = f"held within {amount(margins[-1])}"
    return within if (fine["state"] == "held").all() else f"{within} or shrank"


def _everywhere(pairs: pd.DataFrame) -> str:
    places = pairs["place"].unique()
    return "everywhere" if len(places) > 1 else f"in {places[0]}"


def _of(part: pd.DataFrame, pairs: pd.DataFrame) -> str:
    return f"{len(part):,} of {len(pairs):,} comparisons"


def _places(pairs: pd.DataFrame) -> str:
    """The test sets of some comparisons: one or two names, or their number."""
    names = list(dict.fromkeys(pairs["place"]))
    return "in " + (" and ".join(names) if len(names) <= NAMED else f"{len(names)} test sets")


def _grew(grew: pd.DataFrame, known: pd.DataFrame, amount: Callable[[float], str]) -> str:
    gaps, all_gaps = (len(rows[["data", "attribute"]].drop_duplicates()) for rows in (grew, known))
    largest = amount(grew["change"].max())
    if gaps > 1:
        return f"{gaps} of {all_gaps} gaps grew, by up to {largest} in {grew['place'].iloc[0]}"
    few = len(grew) <= (1 - MOSTLY) * len(known)
    unknown = len(known) - len(grew) - known["state"].isin(FINE).sum()
    if few and unknown:
        verb = "is" if unknown == 1 else "are"
        return f"{_gap(grew)} grew in {_of(grew, known)}; {unknown:,} {verb} unknown"
    return f"{_gap(grew)} grew {_places(grew)}, by {'up to ' if len(grew) > 1 else ''}{largest}"


def _exceptions(of: dict[str, pd.DataFrame], amount: Callable[[float], str]) -> str:
    """What the few comparisons say that did not hold."""
    grew, bounded = of["grew"], of["inconclusive"]
    if len(grew) == 1:
        return f"grew in {grew['place'].iloc[0]}, by {amount(grew['change'].iloc[0])}"
    if len(grew):
        return f"grew in {len(grew)}, by up to {amount(grew['change'].max())}"
    for name, words in (("reversed", "reversed in"), ("changed", "a difference changed in")):
        if len(of[name]):
            return f"{words} {len(of[name])}"
    if len(of["not estimable"]):
        return f"{len(of['not estimable']) + len(bounded)} cannot be judged"
    return f"{len(bounded)} may change by up to {amount(bounded['bound'].max())}"


def _few(pair: pd.Series) -> str:
    """What there is too little of for a comparison, where more of it alone would do."""
    if not np.isfinite(pair["have"]) or np.isinf(pair["needed"]):
        return ""
    if pair["limit"] == "refits":
        return f"; {pair['have']:.0f} refits are too few"
    where = "at home" if pair["limit"] == "rows at home" else f"in {pair['place']}"
    if not pair["have"]:
        return f"; no rows of {pair['group']} {where}"
    rows = "row" if pair["have"] == 1 else "rows"
    return f"; only {pair['have']:,.0f} {rows} of {pair['group']} {where}"


def fairer(methods: pd.DataFrame) -> str:
    """Which methods are fairer than plain training under shift, in one sentence.

    Args:
        methods: columns data, method, least (a lower bound of how much smaller its gap is; missing
            where there is none) and accuracy (the change of accuracy that comes with it).

    Returns:
        A sentence without its full stop; "" if there is no method beside plain training.

    Examples:
        >>> methods = pd.DataFrame(
        ...     {"data": "crime", "method": ["cuma", "laftr"], "least": [0.125, -0.03],
        ...      "accuracy": [-0.04, -0.05]})
        >>> fairer(methods)
        'Fairer than plain training under shift: cuma, by at least 12 points (crime; accuracy −4)'
        >>> fairer(methods[methods["least"] < 0])
        'Fairer than plain training under shift: unknown; shown of none of 1 method'
    """
    if methods.empty:
        return ""
    about = "Fairer than plain training under shift:"
    shown = methods[methods["least"] > 0].sort_values("least", ascending=False, kind="stable")
    tested = int(methods["least"].notna().sum())
    if not tested:
        return f"{about} unknown; it takes {FEWEST_REFITS} seeds"
    if shown.empty:
        return f"{about} unknown; shown of none of {tested} method{'s' if tested > 1 else ''}"
    said = [
        f"{row['method']}, by {_at_least(row['least'])} ({row['data']}{_cost(row['accuracy'])})"
        for row in shown.head(NAMED).to_dict("records")
    ]
    more = f"; {len(shown) - NAMED} more" if len(shown) > NAMED else ""
    return f"{about} {'; '.join(said)}{more}"


def _cost(accuracy: float) -> str:
    """The change of accuracy that comes with a smaller gap, where it is known."""
    return "" if pd.isna(accuracy) else f"; accuracy {signed(accuracy)}"


def _at_least(bound: float) -> str:
    """A lower bound in points, rounded down."""
    rounded = np.floor(100 * bound + 1e-9)
    return f"at least {in_points(rounded / 100)}" if rounded else "less than 1 point"


def limit(pairs: pd.DataFrame, amount: Callable[[float], str] = in_points) -> str:
    """What would settle the comparison that is least known, in one short line; "" if all are known.

    Args:
        pairs: as for ``answer``, with the columns needed and needed_factor.
        amount: how a size is written.
    """
    unknown = worst_first(pairs[pairs["state"].isin(["inconclusive", "not estimable"])])
    known = unknown[np.isfinite(unknown["needed_factor"].astype(float))]
    if known.empty:
        return ""
    pair = known.iloc[0]
    of = f" of {pair['data']}" if pairs["data"].nunique() > 1 else ""
    where = f"To see a change of {amount(pair['margin'])} in {pair['place']}{of}:"
    if not np.isfinite(pair["needed"]):
        times = pair["needed_factor"]
        text = f"{times:.1f}" if times < TWICE else one_digit(times)
        return f"{where} about {text} times as much data, at home and there"
    if pair["limit"] == "refits":
        return f"{where} about {one_digit(pair['needed'])} refits"
    at = "at home" if pair["limit"] == "rows at home" else "there"
    return f"{where} about {one_digit(pair['needed'])} rows of {pair['group']} {at}"


def one_digit(value: float) -> str:
    """A number rounded to one digit.

    >>> one_digit(388.2), one_digit(7.4), one_digit(18_340)
    ('400', '7', '20,000')
    """
    return f"{float(f'{value:.0e}'):,.0f}"


def gated(
    verdicts: Sequence[str],
    what: str,
    value: str,
    limit: str,
    evident: bool = True,
    is_past: bool = True,
) -> str:
    """Whether values stay within their limits, in one sentence of at most fifteen words.

    Args:
        verdicts: FAIL, INCONCLUSIVE or PASS of every value, the worst first.
        what: name of the first value.
        value: that value, or its interval where only a part of it is past the limit.
        limit: its limit and on which side it must not be: ``above 0.1``.
        evident: whether the whole interval is past the limit, of a value that fails.
        is_past: whether the value is, of a value that fails.

    Examples:
        >>> gated(["FAIL", "PASS"], "the equalized odds difference by race", "0.22", "above 0.1")
        'No: the equalized odds difference by race is 0.22, above 0.1'
        >>> gated(["PASS", "PASS"], "accuracy", "0.9", "below 0.8")
        'Yes: both values are within their limits'
    """
    if verdicts[0] == "FAIL":
        verdict = "No" if evident or not is_past else "No, by the estimate alone"
        return f"{verdict}: {what} is {value}, {'' if is_past else 'perhaps '}{limit}"
    if verdicts[0] == "INCONCLUSIVE":
        return f"Unknown: {what} is {value}, perhaps {limit}"
    if len(verdicts) == 1:
        return f"Yes: {what} is {value}, not {limit}"
    every = "both" if len(verdicts) == 2 else f"all {len(verdicts)}"  # noqa: PLR2004
    return f"Yes: {every} values are within their limits"


def grew_in(attribute: str, period: str) -> str:
    """The answer about a gap whose monitor has an alarm."""
    return f"No: the gap by {attribute} grew, most likely in {period}"
