"""The five prediction tasks of folktables on ACS person records of 2018.

Rows, labels and features follow ``folktables/acs.py`` of Ding et al. (2021), "Retiring Adult".
ST, PUMA and POWPUMA name the place and are no features here.
"""

from dataclasses import dataclass, field
from math import inf

from robust_fairness.datasets.raw.schemas import Field, Number

Bounds = dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Task:
    """One prediction task.

    Attributes:
        target: column of the label.
        classes: names of the negative and the positive class; ``{threshold}`` stands for the
            threshold.
        features: columns of the features.
        rows: smallest and largest value of the rows kept, by column; a missing cell is dropped.
        threshold: the label is positive above it; None: positive where the target is 1.
        incomplete: numeric features in which a cell may be missing.
    """

    target: str
    classes: tuple[str, str]
    features: tuple[str, ...]
    rows: Bounds = field(default_factory=dict)
    threshold: float | None = None
    incomplete: tuple[str, ...] = ()


TASKS = {
    "Income": Task(
        target="PINCP",
        classes=("at most {threshold:g}", "above {threshold:g}"),
        features=("AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX", "RAC1P"),
        rows={"AGEP": (17, inf), "PINCP": (101, inf), "WKHP": (1, inf), "PWGTP": (1, inf)},
        threshold=50_000,
    ),
    "PublicCoverage": Task(
        target="PUBCOV",
        classes=("no public coverage", "public coverage"),
        features=(
            "AGEP", "SCHL", "MAR", "SEX", "DIS", "ESP", "CIT", "MIG", "MIL", "ANC", "NATIVITY",
            "DEAR", "DEYE", "DREM", "PINCP", "ESR", "FER", "RAC1P",
        ),
        rows={"AGEP": (-inf, 64), "PINCP": (-inf, 30_000)},
    ),
    "Mobility": Task(
        target="MIG",
        classes=("moved", "same house"),
        features=(
            "AGEP", "SCHL", "MAR", "SEX", "DIS", "ESP", "CIT", "MIL", "ANC", "NATIVITY", "RELP",
            "DEAR", "DEYE", "DREM", "RAC1P", "GCL", "COW", "ESR", "WKHP", "JWMNP", "PINCP",
        ),
        rows={"AGEP": (19, 34)},
        incomplete=("WKHP", "JWMNP"),
    ),
    "Employment": Task(
        target="ESR",
        classes=("not employed", "employed"),
        features=(
            "AGEP", "SCHL", "MAR", "RELP", "DIS", "ESP", "CIT", "MIG", "MIL", "ANC", "NATIVITY",
            "DEAR", "DEYE", "DREM", "SEX", "RAC1P",
        ),
        incomplete=("SCHL",),
    ),
    "TravelTime": Task(
        target="JWMNP",
        classes=("at most {threshold:g} minutes", "over {threshold:g} minutes"),
        features=(
            "AGEP", "SCHL", "MAR", "SEX", "DIS", "ESP", "MIG", "RELP", "RAC1P", "CIT", "OCCP",
            "JWTR", "POVPIP",
        ),
        rows={"AGEP": (17, inf), "PWGTP": (1, inf), "ESR": (1, 1)},
        threshold=20,
        incomplete=("POVPIP",),
    ),
}  # fmt: skip

# Data dictionary of 2018: numbers, ...
NUMBERS: dict[str, Field] = {
    "AGEP": Number(0, 99, whole=True),
    "SCHL": Number(1, 24, whole=True, missing=("",)),  # ordered: no schooling to doctorate
    "WKHP": Number(1, 99, whole=True, missing=("",)),
    "JWMNP": Number(1, 200, whole=True, missing=("",)),
    "POVPIP": Number(0, 501, whole=True, missing=("",)),
    "PINCP": Number(-19_998, 4_209_995, whole=True, missing=("",)),
    "PWGTP": Number(1, 9_999, whole=True),
    "PUBCOV": Number(1, 2, whole=True),
}
# ... codes (in those of OPTIONAL_CODES an empty cell means "not applicable"), ...
CODES = {
    "SEX": range(1, 3),
    "RAC1P": range(1, 10),
    "MAR": range(1, 6),
    "RELP": range(18),
    "DIS": range(1, 3),
    "CIT": range(1, 6),
    "ANC": (1, 2, 3, 4, 8),
    "NATIVITY": range(1, 3),
    "DEAR": range(1, 3),
    "DEYE": range(1, 3),
}
OPTIONAL_CODES = {
    "COW": range(1, 10),
    "DREM": range(1, 3),
    "ESP": range(1, 9),
    "ESR": range(1, 7),
    "FER": range(1, 3),
    "GCL": range(1, 3),
    "JWTR": range(1, 13),
    "MIG": range(1, 4),
    "MIL": range(1, 5),
}
# ... and long lists of codes, in the groups of the dictionary, by the first code of each group
GROUPED_CODES = {
    "OCCP": {
        "MGR": 10, "BUS": 500, "FIN": 800, "CMM": 1005, "ENG": 1305, "SCI": 1600, "CMS": 2001,
        "LGL": 2100, "EDU": 2205, "ENT": 2600, "MED": 3000, "HLS": 3601, "PRT": 3700, "EAT": 4000,
        "CLN": 4200, "PRS": 4330, "SAL": 4700, "OFF": 5000, "FFF": 6005, "CON": 6200, "EXT": 6800,
        "RPR": 7000, "PRD": 7700, "TRN": 9005, "MIL": 9800, "unemployed": 9920,
    },
    "POBP": {
        "US state": 1, "US territory": 60, "Europe": 100, "Asia": 200, "Americas": 300,
        "Africa": 400, "Oceania": 500,
    },
}  # fmt: skip
FIELDS: dict[str, Field] = {
    **NUMBERS,
    **{name: Number(min(codes), max(codes), whole=True) for name, codes in CODES.items()},
    **{
        name: Number(min(codes), max(codes), whole=True, missing=("",))
        for name, codes in OPTIONAL_CODES.items()
    },
    "OCCP": Number(10, 9_920, whole=True, missing=("",)),
    "POBP": Number(1, 554, whole=True),
    "ST": Number(1, 72, whole=True),
}
FEATURES = sorted({name for task in TASKS.values() for name in task.features})
