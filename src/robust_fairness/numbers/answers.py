"""The answers that every page, console and summary begins with: a closed list of sentences.

Each has at most fifteen words, where a name counts as one. Unknown is never worded as good news:
"Yes" means that every comparison held within its margin or shrank, "No" that a gap surely grew or
reversed its sign.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from robust_fairness.numbers.estimate import FEWEST_REFITS

NOTHING = "Unknown: no gap was measured both at home and in another test set"
NAMED = 2  # test sets, methods or gaps that a sentence names
FINE = ("held", "shrank")
WORSE = {"grew": "grew", "reversed": "reversed its sign"}  # what makes the answer No
# Columns that a sentence is made of.
USED = [
    "data", "attribute", "place", "method", "state", "change", "least", "bound", "margin", "reason",
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
    rank = np.array([RANKS.get(state, np.inf) for state in pairs["state"]])
    size = np.where(rank == RANKS["inconclusive"], pairs["bound"], pairs["change"].abs())
    if "least" in pairs:
        least = np.where(rank == RANKS["grew"], pairs["least"].astype(float), np.nan)
        size = np.where(np.isnan(least), size, least)
    order = np.lexsort((-np.nan_to_num(size.astype(float), nan=np.inf), rank))
    return pairs.iloc[order[: np.isfinite(rank).sum()]].reset_index(drop=True)


def answer(
    pairs: pd.DataFrame, amount: Callable[[float], str] = in_points, gap: str = "gap"
) -> str:
    """Whether a gap stayed what it is at home, in one sentence of at most fifteen words.

    Args:
        pairs: comparisons of a gap at home and in a test set, by a model; columns data, attribute,
            place (name of the test set), method (where there are several), state, change, least
            (how much it grew at least, optional), bound, margin and reason (why nothing can be
            said, optional), see ``verdicts.tested``. States may also be ``trivial`` and
            ``missing``, which do not count.
        amount: how a size is written; by default in percentage points.
        gap: what the gap is called.

    Returns:
        A sentence without its full stop.

    Examples:
        >>> pairs = pd.DataFrame([
        ...     {"data": "acs", "attribute": "race", "place": place, "method": method,
        ...      "state": state, "change": change, "least": least, "bound": 0.3, "margin": 0.05}
        ...     for place, method, state, change, least in
        ...     [("NM", "erm", "grew", 0.2, 0.184), ("SD", "cuma", "grew", 0.28, 0.09),
        ...      ("WV", "erm", "held", 0, 0)]])
        >>> answer(pairs)
        'No: the gap by race grew by at least 18 points in NM (erm)'
        >>> answer(pairs[pairs["state"] == "held"])
        'Yes: the gap by race held within 5 points in WV'
    """
    known = worst_first(pairs.reindex(columns=USED))
    if known.empty:
        if (pairs["state"] == "trivial").any():
            return "Unknown: every model predicts one class or no better than that"
        return "Unknown: every model failed" if len(pairs) else NOTHING
    fine = known[known["state"].isin(FINE)]
    if len(fine) == len(known):
        places, held = known["place"].unique(), fine["state"] == "held"
        where = "everywhere" if len(places) > 1 else f"in {places[0]}"
        said = "shrank"
        if held.any():
            within = f"held within {amount(fine.loc[held, 'margin'].max())}"
            said = within if held.all() else f"{within} or {said}"
        return f"Yes: {_gap(known, gap)} {said} {where}"
    worst = known.iloc[0]
    if worst["state"] not in WORSE:
        return f"Unknown{_unknown(fine, known, amount, gap)}"
    place = _places(known.iloc[:1], known)
    place += f" ({worst['method']})" if known["method"].nunique() > 1 else ""
    said = f"{WORSE[worst['state']]} {place}"
    if worst["state"] == "grew" and pd.isna(worst["least"]):
        said = f"grew {place}, by {amount(worst['change'])}"
    elif worst["state"] == "grew":
        least = np.floor(100 * worst["least"] + 1e-9) / 100
        said = f"grew {f'by at least {amount(least)} ' if least > 0 else ''}{place}"
    return f"No: {_gap(known.iloc[:1], gap)} {said}"


def also(gaps: Mapping[str, pd.DataFrame], leading: str = "") -> str:
    """What else grew or reversed its sign, of all gaps that are shown; "" if nothing did.

    Args:
        gaps: rows as for ``answer`` by what the gap is called.
        leading: the gap whose worst comparison has been named.

    Examples:
        >>> row = {"data": "d", "attribute": "sex", "state": "grew", "change": 0.1}
        >>> also({"error of the worst group": pd.DataFrame([row | {"place": "west"}])})
        'Also: the error of the worst group by sex grew in west'
    """
    said = []
    for name, pairs in gaps.items():
        known = worst_first(pairs.reindex(columns=USED))
        if name == leading and len(known):
            first = known.iloc[0]
            same = [known[column] == first[column] for column in ("data", "attribute", "place")]
            known = known[~np.logical_and.reduce([*same, known["state"] == first["state"]])]
        worse = known[known["state"].isin(list(WORSE))]
        by = worse.groupby(["data", "attribute", "state"], sort=False)
        said += [
            f"{_gap(part, name)} {WORSE[part['state'].iloc[0]]} {_places(part, known)}"
            for _, part in by
        ]
    more = f"; {len(said) - NAMED} more" if len(said) > NAMED else ""
    return f"Also: {'; '.join(said[:NAMED])}{more}" if said else ""


def _unknown(
    fine: pd.DataFrame, known: pd.DataFrame, amount: Callable[[float], str], gap: str
) -> str:
    """What is unknown, and how large changes may be."""
    changed, bounded = (known[known["state"] == name] for name in ("changed", "inconclusive"))
    most = amount(bounded["bound"].max())
    possible = f"changes of up to {most} are possible"
    if len(changed):
        rest = f"the gap may have, by up to {most}" if len(bounded) else "the gap may have"
        return f": group differences changed {_places(changed, changed)}; {rest}"
    if len(fine):
        unknown = known.drop(fine.index)
        of = f"{len(unknown):,} of {len(known):,} comparisons"
        return f" in {of}{f': {possible}' if len(bounded) else ''}"
    if len(bounded):
        return f": {possible}"
    reason = known["reason"].iloc[0]
    why = f"; {reason}" if isinstance(reason, str) and reason else ""
    return f": {_gap(known, gap)} cannot be estimated{why}"


def _gap(pairs: pd.DataFrame, name: str) -> str:
    """The gap of some comparisons, or that there are several."""
    names = pairs[["data", "attribute"]].drop_duplicates()
    if len(names) > 1:
        return f"every {name}"
    attribute = names["attribute"].iloc[0]
    return f"the {name} by {attribute}" if attribute else f"the {name}"


def _places(part: pd.DataFrame, pairs: pd.DataFrame) -> str:
    """The test sets of some comparisons: one or two names, or their number."""
    names = list(dict.fromkeys(part["place"]))
    data = part["data"].unique()
    of = f" of {data[0]}" if len(data) == 1 < pairs["data"].nunique() else ""
    where = " and ".join(names) if len(names) <= NAMED else f"{len(names)} test sets"
    return f"in {where}{of}"


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
    said = []
    for row in shown.head(NAMED).to_dict("records"):
        rounded = np.floor(100 * row["least"] + 1e-9) / 100
        least = f"at least {in_points(rounded)}" if rounded else "less than 1 point"
        cost = "" if pd.isna(row["accuracy"]) else f"; accuracy {signed(row['accuracy'])}"
        said.append(f"{row['method']}, by {least} ({row['data']}{cost})")
    more = f"; {len(shown) - NAMED} more" if len(shown) > NAMED else ""
    return f"{about} {'; '.join(said)}{more}"


def limit(pairs: pd.DataFrame, amount: Callable[[float], str] = in_points) -> str:
    """What would help with the comparison that is least known; "" if all are known.

    Args:
        pairs: as for ``answer``, with the columns limit, rate, group, have, needed and
            needed_factor.
        amount: how a size is written.

    Returns:
        A sentence without its full stop: how many rows of which group, or trainings, or that
        nothing helps.
    """
    unknown = worst_first(pairs[pairs["state"].isin(["inconclusive", "not estimable"])])
    unknown = unknown[np.isfinite(unknown["have"].astype(float))]
    if unknown.empty:
        return ""
    pair = unknown.iloc[0]
    of = f" of {pair['data']}" if pairs["data"].nunique() > 1 else ""
    at = "where it was trained" if pair["limit"] == "rows at home" else f"in {pair['place']}{of}"
    rows = f"rows of {pair['group']} {at}"
    now = f"{pair['have']:,.0f} now"
    if pair["reason"] and pd.notna(pair["reason"]):
        return f"More rows do not help: {pair['reason']}"
    if pd.isna(pair["needed_factor"]):
        return f"It takes more {rows} ({now})"
    what = f"To see a change of {amount(pair['margin'])} in {pair['place']}{of}, it takes about"
    if np.isinf(pair["needed_factor"]):
        return "No number of rows shows that a gap held within a margin of 0"
    alone = np.isfinite(pair["needed"])
    needed = one_digit(pair["needed"] if alone else pair["needed_factor"] * pair["have"])
    if pair["limit"] == "refits":
        rows, now = "trainings of each method", f"{pair['have']:.0f} now"
    more = "" if alone else ", and as many times more of all others"
    return f"{what} {needed} {rows} ({now}){more}"


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
