"""Public tables whose files and columns ``public.yml`` declares; here are their rules.

Each class turns the typed columns of its files into features, target and attributes.
"""

from collections.abc import Iterable
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pandas as pd
import yaml
from pydantic import BaseModel, BeforeValidator, PositiveInt

from robust_fairness.auditing.read.reading import read_cells
from robust_fairness.auditing.read.schemas import Category, Field, Number, field, validated
from robust_fairness.bench.datasets.base import TableDataset, TableParameters, TypedTable
from robust_fairness.bench.datasets.tables._tables import (
    MISSING,
    FaircoccoParameters,
    TopShareParameters,
    coded,
    frequent,
    only_of,
    require_rows,
    top_share,
    two_categories,
    with_indicators,
    without,
)
from robust_fairness.bench.experiment.yaml_source import FASTER
from robust_fairness.bench.samples.splits import Fraction, random_splits
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files, as_official, unzipped

DATE = "compas_screening_date"
COMPAS_SCORES = ("decile_score", "v_decile_score")


class Recoded(BaseModel, extra="forbid", frozen=True):
    """Groups made of the values of a column.

    Attributes:
        of: the column.
        value: a value that is a group, before that of all others, ``rest``.
        codes: or the group of every value; several values may be of one.
        also: further columns of the features that reveal the group.
    """

    of: str
    value: str = ""
    rest: str = ""
    codes: dict[int | float | str, str] = {}
    also: tuple[str, ...] = ()

    def groups(self, table: pd.DataFrame) -> pd.Series:
        """The group of every row; the values themselves where nothing is said of them."""
        values = table[self.of]
        if self.value:
            return two_categories(values != self.value, (self.value, self.rest))
        return coded(values, self.codes) if self.codes else values


# The name of a column alone is that column.
Made = Annotated[Recoded, BeforeValidator(lambda of: {"of": of} if isinstance(of, str) else of)]


class Declared(BaseModel, extra="forbid", frozen=True):
    """A table as ``public.yml`` declares it.

    Attributes:
        files: documented numbers of rows, by path; None where the number is not known.
        columns: what the columns hold, see ``schemas.field``; numbers where nothing is said.
        header: whether the first line of a file has the names of the columns.
        delimiter: what separates two cells.
        attributes: the column that each attribute is, or is made of.
        unread: columns that are not read.
        kept: documented number of rows that the filters of the source leave, 0 without any.
    """

    files: dict[str, int | None]
    columns: dict[str, Any]
    attributes: dict[str, Made] = {}
    header: bool = True
    delimiter: str = ","
    unread: tuple[str, ...] = ()
    kept: int = 0

    @cached_property
    def fields(self) -> dict[str, Field | None]:
        """What the columns that are read may hold."""
        return {n: field(kind) for n, kind in self.columns.items() if n not in self.unread}


@cache
def declared(name: str) -> Declared:
    """The declaration of a table."""
    text = Path(__file__).with_suffix(".yml").read_text(encoding="utf-8")
    return Declared(**yaml.load(text, FASTER)[name])  # a safe loader


class PublicTable(TableDataset):
    """A table that ``public.yml`` declares under its name."""

    def required_files(self) -> tuple[str, ...]:
        return tuple(declared(self.name).files)

    @property
    def feature_columns(self) -> dict[str, tuple[str, ...]]:  # type: ignore[override]
        """The columns that attributes are made of, and those that tell as much."""
        return {name: (of.of, *of.also) for name, of in declared(self.name).attributes.items()}

    def attributes(self, table: pd.DataFrame) -> dict[str, pd.Series]:
        """The attributes that are declared."""
        return {name: of.groups(table) for name, of in declared(self.name).attributes.items()}

    def typed(
        self, files: Files, file: str = "", fields: dict[str, Field | None] | None = None
    ) -> pd.DataFrame:
        """The columns of a file, by default the first, with their types, by row number from 0."""
        table, file = declared(self.name), file or self.required_files()[0]
        fields = table.fields if fields is None else fields
        cells = read_cells(
            self.blocks(files, file), file, list(fields),
            header=None if table.header else list(table.columns),
            delimiter=table.delimiter, rows=table.files[file],
        )  # fmt: skip
        return validated(cells, fields, file)

    def blocks(self, files: Files, file: str) -> Iterable[bytes]:
        """The bytes of one of the files."""
        return files.blocks(file)

    def official_splits(self, training: int, rows: int, splits: int) -> pd.DataFrame | None:
        """Splits whose test part is the test file, after ``training`` rows; None of random ones."""
        if self.parameters.split == "random":
            return None
        return random_splits(rows, splits, self.parameters, training)


class Adult(PublicTable):
    """Adult: income above 50,000 dollars in the US census of 1994 (Kohavi 1996).

    Both official files are one table. Class 0 is ``<=50K``. Attributes are ``sex`` and ``race``
    (categories) and ``age`` in years.

    Source: "Equalized Robustness" (under review, ICLR 2022), 5.1.
    """

    name = "adult"

    class Parameters(TableParameters):
        """Parameters of Adult.

        Attributes:
            missing: ``keep`` all 48,842 rows, an unknown value being a category of its own (as
                "Equalized Robustness" counts them), or ``drop`` rows with one, which leaves 45,222.
            drop: columns left out of the features, such as ``fnlwgt`` (the census weight of the
                row). None by default: all columns give the 108 features usual in the field.
            split: ``random``, or ``official``: all seeds share the test file, and only validation
                rows are drawn.
            train_rows: 30,000 of 48,842 in the source, validation included; the official split has
                its own size.
        """

        missing: Literal["keep", "drop"] = "keep"
        drop: tuple[Literal["fnlwgt", "education-num"], ...] = ()
        sensitive: tuple[Literal["sex", "race", "age"], ...] = ("sex",)
        split: Literal["random", "official"] = "random"
        train_rows: PositiveInt | Fraction = 30_000

    def read(self, files: Files, splits: int) -> TypedTable:
        parts = [self.typed(files, file) for file in self.required_files()]
        table = pd.concat(parts, ignore_index=True)
        if self.parameters.missing == "drop":
            incomplete = ["workclass", "occupation", "native-country"]
            table = table[(table[incomplete] != "?").all(axis=1)].copy()
            for name in incomplete:
                table[name] = without(table[name], "?")
        first = int((table.index < len(parts[0])).sum())  # rows of the training file
        return TypedTable(
            target=table.pop("label"),
            features=table.drop(columns=list(self.parameters.drop)),
            attributes=self.attributes(table),
            splits=self.official_splits(first, len(table), splits),
        )


class Communities(PublicTable):
    """Communities and Crime: violent crime in 1,994 US communities (Redmond and Baveja 2002).

    Ninety-nine numbers from 0 to 1 of each community, and its violent crime. Where a community is,
    and columns that lack a value for some community, are left out, so that nothing has to be
    imputed. Class 0 and group 0 are the top 30 %.

    Source: "Equalized Robustness" (under review, ICLR 2022), 5.1 and footnote 4; "FairCOCCO",
    B.1.2 and Table 7.
    """

    name = "communities"

    class Parameters(TableParameters, TopShareParameters):
        """Parameters of Communities and Crime.

        Attributes:
            target: violent crime, cut at its top share, or ``ViolentCrimesPerPop`` itself
                (FairCOCCO, B.1.2).
            sensitive: names ``..._group`` are cut at the top share like the target, the others are
                numbers. FairCOCCO takes four ethnic proportions together (its tables; its text
                names three of them, without ``racePctHisp``).
            domain: ``state`` makes the state the domain, by its FIPS code; it is no feature.
            train_rows: 1,500 of 1,994 in the source, validation included.
        """

        target: Literal["binary", "continuous"] = "binary"
        sensitive: tuple[
            Literal[
                "racepctblack_group",
                "FemalePctDiv_group",
                "racepctblack",
                "FemalePctDiv",
                "racePctWhite",
                "racePctAsian",
                "racePctHisp",
            ],
            ...,
        ] = ("racepctblack_group",)
        domain: Literal["", "state"] = ""
        train_rows: PositiveInt | Fraction = 1500

    def read(self, files: Files, splits: int) -> TypedTable:
        parameters, (file,) = self.parameters, self.required_files()
        table = self.typed(files)
        domain = table.pop("state").astype("category")
        crime = table.pop("ViolentCrimesPerPop")
        cut = ("racepctblack", "FemalePctDiv")
        groups = {f"{name}_group": top_share(table[name], file, parameters) for name in cut}
        attributes = self.attributes(table.assign(**groups))
        attributes |= {name: table[name] for name in parameters.sensitive if name in table}
        if parameters.domain:
            attributes["state"] = domain
        return TypedTable(
            features=table,
            target=top_share(crime, file, parameters) if parameters.target == "binary" else crime,
            attributes=attributes,
            domain=parameters.domain,
        )


class Compas(PublicTable):
    """COMPAS: recidivism within two years of defendants in Florida (Angwin et al. 2016).

    ProPublica's filters keep rows screened within 30 days of the arrest, with a known outcome, an
    ordinary charge and a score: 6,172 of 7,214. The source counts ten features without naming them;
    these are what the file has on the defendant and the case at the time of the screening. Left out
    are names, dates, the free text of the charge, times in jail (which reach past the screening),
    everything about later offences, and COMPAS's own scores unless ``scores`` is set.
    Class 0 is no recidivism.

    Source: "FairCOCCO", B.1.2 and Table 7; filters of J. Larson et al., "How We Analyzed the
    COMPAS Recidivism Algorithm", ProPublica (2016).
    """

    name = "compas"

    class Parameters(FaircoccoParameters):
        """Parameters of COMPAS.

        Attributes:
            target: a violent offence after the screening, as in the source, or any within two
                years.
            domain: ``quarter`` makes the quarter of the screening the domain.
            followed: keep only screenings from 2013Q1 to 2014Q1. The data end less than two years
                after the later ones, nearly all of which are positive for that reason
                (M. Barenstein, arXiv 1906.04711). False keeps all 6,172 rows, as papers do.
            scores: add COMPAS's own ``decile_score`` and ``v_decile_score`` to the features.
            sensitive: ``race`` is Caucasian or not, ``race_full`` has six categories.
        """

        target: Literal["is_violent_recid", "two_year_recid"] = "is_violent_recid"
        domain: Literal["", "quarter"] = ""
        followed: bool = True
        scores: bool = False
        sensitive: tuple[Literal["race", "race_full", "sex", "age"], ...] = ("race",)

    def read(self, files: Files, splits: int) -> TypedTable:
        domain, (file,) = self.parameters.domain, self.required_files()
        table = self.typed(files)
        table = table[
            table["days_b_screening_arrest"].between(-30, 30)
            & (table["is_recid"] != "-1")
            & (table["c_charge_degree"] != "O")
            & (table["score_text"] != "N/A")
        ]
        require_rows(table, declared(self.name).kept, file, "the filters of ProPublica")
        degree = without(table["c_charge_degree"], "O")
        table = table.assign(c_charge_degree=degree, quarter=_quarters(table.pop(DATE), file))
        if self.parameters.followed or domain:
            table = table[table["quarter"].notna()]
        not_features = {*COMPAS_SCORES, "two_year_recid", "is_violent_recid"}
        not_features |= {"is_recid", "score_text", "quarter"}
        names = [name for name in table if name not in not_features]
        return TypedTable(
            features=table[[*names, *(COMPAS_SCORES if self.parameters.scores else ())]],
            target=table[self.parameters.target],
            attributes=self.attributes(table) | ({domain: table[domain]} if domain else {}),
            domain=domain,
        )


def _quarters(dates: pd.Series, file: str) -> pd.Series:
    """The quarters that are domains, such as 2013Q1; missing in the others."""
    with as_official(f"{file}, column {DATE}"):
        days = pd.to_datetime(dates, format="%Y-%m-%d")
    known = ["2013Q1", "2013Q2", "2013Q3", "2013Q4", "2014Q1"]
    quarters = days.dt.to_period("Q").astype(str)
    return quarters.where(quarters.isin(known)).astype(pd.CategoricalDtype(known))


class CreditCard(PublicTable):
    """Credit card clients in Taiwan in 2005, and who did not pay the next bill (Yeh and Lien 2009).

    Credit limit, half a year of bills and payments: of the 24 columns 23 are features. Class 0 is
    ``paid``. Attributes are ``SEX``, ``MARRIAGE``, ``EDUCATION`` (categories) and ``AGE`` in years.
    The table is UCI's spreadsheet exported as CSV with its second header row, with or without the
    column ``ID``.

    Source: "FairCOCCO", Table 7.
    """

    name = "credit_card"

    class Parameters(FaircoccoParameters):
        """Parameters of the credit card clients.

        Attributes:
            undocumented: the codes 0, 5 and 6 of ``EDUCATION`` and 0 of ``MARRIAGE`` join the
                documented category ``others``, are a category of their ``own``, which may be too
                small for rates, or their rows are left out (``drop``).
        """

        undocumented: Literal["others", "own", "drop"] = "others"
        sensitive: tuple[Literal["SEX", "MARRIAGE", "EDUCATION", "AGE"], ...] = (
            "SEX",
            "MARRIAGE",
            "EDUCATION",
        )

    # UCI's own name of the target, and those of two public exports
    targets: ClassVar = (
        "default payment next month", "default payment", "default.payment.next.month",
    )  # fmt: skip

    def read(self, files: Files, splits: int) -> TypedTable:
        (file,) = self.required_files()
        cells = read_cells(files.blocks(file), file, rows=declared(self.name).files[file])
        if "X1" in cells:
            raise InputError(
                f"{file}, line 1: the header is X1 to X23 and Y; the only header must be the "
                "second one of the spreadsheet (LIMIT_BAL, SEX, ...): delete this line, or rename "
                "the columns"
            )
        present = [name for name in self.targets if name in cells]
        if len(present) != 1:
            raise InputError(
                f"{file}: {len(present)} target columns; expected one of {self.targets}"
            )
        paid = Category({"0": "paid", "1": "default"})
        table = validated(cells, declared(self.name).fields | {present[0]: paid}, file)
        files.note_values(file, table)
        undocumented = table[["EDUCATION", "MARRIAGE"]] == "undocumented"
        if self.parameters.undocumented == "drop":
            table = table[~undocumented.any(axis=1)]
        if self.parameters.undocumented != "own":
            for name in undocumented:
                table[name] = without(table[name], "undocumented").fillna("others")
        target = table.pop(present[0])
        return TypedTable(table, target, self.attributes(table))


class Drugs(PublicTable):
    """Drug consumption: who ever used heroin, of 1,877 respondents (Fehrman et al. 2017).

    The features are numbers as they are in the file: age, gender, education, country and
    ethnicity as its authors quantified them, five traits, impulsiveness and sensation seeking. The
    eight who claim to have used Semeron, a drug that does not exist, are left out. "Used" includes
    over a decade ago. Class 0 is ``never used``. Attributes are categories: two of ``ethnicity``,
    two of ``gender``, six ranges of ``age``.

    Source: "FairCOCCO", B.1.2 and Table 7; the meaning of the numbers is that of the dataset's
    page at UCI.
    """

    name = "drugs"

    class Parameters(FaircoccoParameters):
        """Parameters of the drug consumption data.

        Attributes:
            sensitive: ``ethnicity`` (White or other) in the tables of the source, all three in
                Figure 4.
            drop_sensitive: the source counts 11 features: the file has 12 with ethnicity.
        """

        sensitive: tuple[Literal["ethnicity", "gender", "age"], ...] = ("ethnicity",)
        drop_sensitive: bool = True

    def read(self, files: Files, splits: int) -> TypedTable:
        (file,) = self.required_files()
        table = self.typed(files)
        table = table[table.pop("semer") == "CL0"]
        require_rows(table, declared(self.name).kept, file, "leaving out who claims to use Semeron")
        return TypedTable(
            target=table.pop("heroin"), attributes=self.attributes(table), features=table
        )


class German(PublicTable):
    """German credit: 1,000 loans of a bank in southern Germany, 1973 to 1975 (Hofmann 1994).

    Twenty facts about a borrower and a loan, and whether the contract was complied with.
    Duration, amount and age are numbers; the other seventeen are categories in the codes of the
    file. Class 0 is ``bad`` (300 rows; the sample holds far more of them than the bank had). The
    source's table counts 1,700 rows; its text, and the file, 1,000.

    One code of ``personal_status_sex`` stands for women who are not single *and* for single men, so
    that the attribute ``sex`` of ``south_german`` has a third category (310 rows). The codebook of
    ``statlog`` calls all 310 women and nobody a single woman, which is wrong. It also exchanges who
    is foreign: 37 rows are, and it says 963.

    Source: "FairCOCCO", B.1.2 and Table 7; codes of U. Groemping, "South German Credit Data:
    Correcting a Widely Used Data Set", Beuth University of Applied Sciences Berlin (2019).
    """

    name = "german"

    class Parameters(FaircoccoParameters):
        """Parameters of German credit.

        Attributes:
            coding: ``south_german``, corrected from the original documents (Groemping 2019), as
                the name in the source has it, or ``statlog``, whose codebook exchanges the meaning
                of many codes.
        """

        coding: Literal["south_german", "statlog"] = "south_german"
        sensitive: tuple[Literal["foreign_worker", "sex", "age"], ...] = ("foreign_worker",)

    def required_files(self) -> tuple[str, ...]:
        corrected, older, _ = declared(self.name).files
        return (corrected if self.parameters.coding == "south_german" else older,)

    def missing_files(self, files: Files) -> list[str]:
        """The data file, unless its copy with commas is available."""
        return [] if self._copied(files) else super().missing_files(files)

    def _copied(self, files: Files) -> bool:
        """Whether only the copy of the older file, with commas and a header, is available."""
        *_, older, copy = declared(self.name).files
        return self.required_files() == (older,) and files.available(copy) and not files.has(older)

    def read(self, files: Files, splits: int) -> TypedTable:
        coding, (file,) = self.parameters.coding, self.required_files()
        codebook = declared(self.name).columns
        header = list(codebook) if coding == "statlog" else None
        if self._copied(files):
            *_, file = declared(self.name).files
            header = None
        cells = read_cells(
            files.blocks(file), file, header=header,
            delimiter="," if file.endswith(".csv") else " ", rows=declared(self.name).files[file],
        )  # fmt: skip
        # a header has German names, those of the copy, or these
        by_name = {other: name for name, names in codebook.items() for other in names[:2]}
        cells = cells.rename(columns=by_name)
        table = validated(cells, self._fields(codebook), file)
        files.note_values(f"german_credit/{coding}", table)
        return TypedTable(
            target=table.pop("credit_risk"), attributes=self.attributes(table), features=table
        )

    def _fields(self, codebook: dict[str, Any]) -> dict[str, Field | None]:
        """What the columns may hold, the target last."""
        older = self.parameters.coding == "statlog"
        fields: dict[str, Field | None] = {}
        for name, (_, _, *codes) in codebook.items():
            fields[name] = Number()
            if codes:
                first, last, letters = codes
                numbers = range(first, last + 1)
                fields[name] = Category([f"{letters if older else ''}{k}" for k in numbers])
        return fields | {"credit_risk": Category({"2" if older else "0": "bad", "1": "good"})}


class Heart(PublicTable):
    """Heart disease of 920 patients at four hospitals (Detrano et al. 1989), bundled.

    Attributes are sex, age_group, age and hospital; the class is num > 0. A serum cholesterol or a
    resting blood pressure of 0 is a missing value. ``id`` counts the rows of the four files in
    their order, from 0.

    Source: R. Detrano et al., American Journal of Cardiology 64 (1989).
    """

    name = "heart"

    class Parameters(TableParameters):
        """Parameters of the heart disease data.

        Attributes:
            features: ``common``: the eight columns that all hospitals measured; ``all``: thirteen,
                of which fbs, chol, slope, ca and thal are missing at whole hospitals.
            incomplete: rows with a missing feature: ``keep`` them, with 0 and an indicator column
                for numbers and the category ``missing`` for codes, or ``drop`` them.
        """

        features: Literal["common", "all"] = "common"
        incomplete: Literal["keep", "drop"] = "keep"
        sensitive: tuple[Literal["sex", "age_group", "age"], ...] = ("sex",)

    # measured at all hospitals; the others are missing in a third to two thirds of the rows
    common: ClassVar = ("age", "sex", "cp", "trestbps", "restecg", "thalach", "exang", "oldpeak")

    def read(self, files: Files, splits: int) -> TypedTable:
        parameters, columns = self.parameters, declared(self.name).columns
        table = self.patients(files)
        names = self.common if parameters.features == "common" else [*columns][:-1]
        optional = [name for name in names if "missing" in (columns[name] or ())]
        if parameters.incomplete == "drop":
            table, optional = table.dropna(subset=list(names)), []
        features = table[list(names)].copy()
        numbers = [name for name in optional if features[name].dtype == float]
        for name in set(optional) - set(numbers):
            features[name] = features[name].cat.add_categories(MISSING).fillna(MISSING)
        return TypedTable(
            features=with_indicators(features, numbers),
            target=two_categories(table["num"] > 0, ("no disease", "disease")),
            attributes=self.attributes(table),
            domain="hospital",
        )

    def patients(self, files: Files) -> pd.DataFrame:
        """All patients, typed; missing values are NaN."""
        parts = {file.split(".")[1]: self.typed(files, file) for file in declared(self.name).files}
        table = pd.concat(parts, names=["hospital"]).reset_index(0).reset_index(drop=True)
        measured = table[["trestbps", "chol"]]
        kind = pd.CategoricalDtype(list(parts))
        return table.assign(
            **measured.where(measured > 0), hospital=table["hospital"].astype(kind),
            age_group=two_categories(table["age"] >= 55, ("age under 55", "age 55 or over")),
        )  # fmt: skip


class KddCensus(PublicTable):
    """KDD census income: income above 50,000 dollars in surveys of 1994 and 1995 (Lane and Kohavi).

    Forty facts about a person; class 0 is ``<=50K``. The instance weight is no feature, as the
    codebook ``census-income.names`` demands. The categories are those of ``census-income.data``,
    sorted; the codebook says how many there are.

    Source: "FairCOCCO", Table 7.
    """

    name = "kdd_census"

    class Parameters(FaircoccoParameters):
        """Parameters of the KDD census data.

        Attributes:
            split: ``official``: all seeds share the test file, and only validation rows are drawn,
                as in the source; ``random``: both files are one table, split at random.
            drop: columns left out of the features; the two detailed recodes, the state and the
                three countries of birth make more than half of them.
            sensitive: ``race`` is White or other, ``race_full`` has the five categories of the
                file.
            train_rows: of the random split; the official one has its own size.
        """

        split: Literal["official", "random"] = "official"
        drop: Annotated[
            tuple[str, ...],
            only_of(
                "feature",
                lambda: declared("kdd_census").columns.keys() - {"instance weight", "label"},
            ),
        ] = ()
        sensitive: tuple[Literal["sex", "race", "age", "race_full"], ...] = ("sex", "race", "age")

    def read(self, files: Files, splits: int) -> TypedTable:
        training, test = self.required_files()
        first, fields = self.typed(files, training), dict(declared(self.name).fields)
        for name, count in declared(self.name).columns.items():
            if isinstance(count, int):
                kinds = self._categories(first[name], count, training)
                fields[name] = Category(kinds)
                first[name] = pd.Categorical(first[name], pd.Index(kinds, dtype=object))
        second = self.typed(files, test, fields)
        table = pd.concat([first, second], ignore_index=True)
        return TypedTable(
            target=table.pop("label"),
            features=table.drop(columns=["instance weight", *self.parameters.drop]),
            attributes=self.attributes(table),
            splits=self.official_splits(len(first), len(table), splits),
        )

    @staticmethod
    def _categories(cells: pd.Series, count: int, file: str) -> list[str]:
        """The categories that occur, sorted."""
        rows = cells.value_counts()
        if len(rows) < count:
            raise InputError(
                f"{file}, column {cells.name}: {len(rows)} categories, expected {count}"
            )
        if len(rows) > count:
            row = int((cells == rows.index[-1]).to_numpy().argmax()) + 1
            raise InputError(
                f"{file}, row {row}, column {cells.name}: {rows.index[-1]!r} is the rarest of "
                f"{len(rows)} categories, expected {count}"
            )
        return sorted(map(str, rows.index))


class IowaRecidivism(PublicTable):
    """Iowa prison releases: who is back in prison within three years (Iowa DOC).

    Releases of the fiscal years 2010 to 2014. Features are what is known at the release: age,
    offence, kind of release, district of the parole and whether the person is in the target
    population of the department's programmes; everything about the return is left out. Names that
    changed between the years are one category. Class 1 is ``return``. Attributes are sex, race, age
    and the domain ``year``.

    Source: State of Iowa, "3-Year Recidivism for Offenders Released from Prison in Iowa".
    """

    name = "iowa_recidivism"

    class Parameters(TableParameters):
        """Parameters of the Iowa releases.

        Attributes:
            sensitive: ``race`` has five categories (Hispanic people are one); it is missing for 35
                people, sex for three. Both are no features.
            train_rows: fraction of the releases for training, validation included.
        """

        sensitive: tuple[Literal["sex", "race", "age"], ...] = ("sex", "race")
        train_rows: Fraction = 0.8

    short: ClassVar = {
        "Age At Release ": "age", "Convicting Offense Classification": "offense_class",
        "Convicting Offense Type": "offense_type", "Convicting Offense Subtype": "offense_subtype",
        "Release Type": "release_type", "Main Supervising District": "district",
        "Part of Target Population": "target_population",
    }  # fmt: skip

    def read(self, files: Files, splits: int) -> TypedTable:
        table = self.typed(files).rename(columns=self.short)
        return TypedTable(
            features=table[list(self.short.values())],
            target=table["Recidivism - Return to Prison"],
            attributes=self.attributes(table),
            domain="year",
        )


class LawSchool(PublicTable):
    """Law school: who passed the bar, of the class that began in 1991 (Wightman 1998).

    Grades, test score, income and school of a student: of the 12 columns 11 are features, nine
    numbers, then ``male`` and ``race``. Class 0 is ``failed``. Attributes are ``male`` (female,
    male) and ``race`` (Non-White, White). The file is the public ``law_school_clean.csv`` of Le Quy
    et al. (2022), A survey on datasets for fairness-aware machine learning.

    Source: "FairCOCCO", Table 7.
    """

    name = "law_school"

    class Parameters(FaircoccoParameters):
        """``domain: tier`` makes the tier of the school the domain, which is then no feature."""

        domain: Literal["", "tier"] = ""
        sensitive: tuple[Literal["male", "race"], ...] = ("male", "race")

    def read(self, files: Files, splits: int) -> TypedTable:
        table = self.typed(files)
        files.note_values(self.required_files()[0], table)
        table["male"] = two_categories(table["male"] == 1, ("female", "male"))
        passed = two_categories(table.pop("pass_bar") == 1, ("failed", "passed"))
        attributes = self.attributes(table)
        if self.parameters.domain:
            attributes["tier"] = table.pop("tier").astype(int).astype(str).astype("category")
        return TypedTable(table, passed, attributes, domain=self.parameters.domain)


class Oulad(PublicTable):
    """Open University Learning Analytics Dataset: who passes a module (Kuzilek et al. 2017).

    What is known of a student at the start of a module; passed is Pass or Distinction. Attributes
    are gender, disability, age_band, imd_band (deprivation of the neighbourhood in tenths,
    ``0-10%`` being the most deprived), presentation, module and region.

    Source: J. Kuzilek, M. Hlosta and Z. Zdrahal, Scientific Data 4 (2017).
    """

    name = "oulad"

    class Parameters(TableParameters):
        """Parameters of OULAD.

        Attributes:
            domain: the domain column, which is left out of the features.
            withdrawn: students who withdraw are negative (``keep``) or left out (``drop``).
            train_rows: fraction of the students for training, validation included.
        """

        domain: Literal["presentation", "module", "region"] = "presentation"
        withdrawn: Literal["keep", "drop"] = "keep"
        sensitive: tuple[Literal["gender", "disability", "age_band", "imd_band"], ...] = ("gender",)
        train_rows: Fraction = 0.8

    def read(self, files: Files, splits: int) -> TypedTable:
        table, domain = self.typed(files), self.parameters.domain
        files.note_values(self.required_files()[0], table)
        if self.parameters.withdrawn == "drop":
            table = table[table["final_result"] != "Withdrawn"]
        return TypedTable(
            features=table.drop(
                columns=["id_student", "final_result", *self.feature_columns[domain]]
            ),
            target=two_categories(
                table["final_result"].isin(["Pass", "Distinction"]), ("not passed", "passed")
            ),
            attributes=self.attributes(table),
            domain=domain,
            units=table["id_student"],
        )


class Readmission(PublicTable):
    """Hospital readmission of diabetes patients at 130 US hospitals (Strack et al. 2014).

    Rows, target and domain are those of TableShift: encounters of patients whose race is known,
    99,493 of 101,766 rows, 46 columns as features. Drug doses, diagnoses and other codes below 1 %
    of the rows are merged into ``infrequent``, as there (on all rows, not on training rows); a
    missing cell is a category. Attributes are race, race_full, gender (Male or other), age in
    decades, and the domain admission_source_id, which is no feature.

    Source: J. Gardner, Z. Popovic and L. Schmidt, "Benchmarking Distribution Shift in Tabular Data
    with TableShift", NeurIPS 2023; ``datasets/diabetes_readmission.py`` of its code.
    """

    name = "readmission"

    class Parameters(TableParameters):
        """Parameters of hospital readmission.

        Attributes:
            target: ``any`` readmission, as in TableShift, or one within 30 days (``early``).
            unit: what is split. ``patient``: no patient is in two parts; ``encounter``: row by
                row, as in TableShift, where 9,233 patients are in several parts.
            encounters: ``all``, or the ``first`` one of each patient in the file.
            died: keep encounters that ended in death or hospice care, as in TableShift, or drop
                them.
            sensitive: ``race`` is Caucasian or other, ``race_full`` has five categories.
        """

        target: Literal["any", "early"] = "any"
        unit: Literal["patient", "encounter"] = "patient"
        encounters: Literal["all", "first"] = "all"
        died: Literal["keep", "drop"] = "keep"
        sensitive: tuple[Literal["race", "race_full", "gender", "age"], ...] = ("race",)
        train_rows: Fraction = 0.8

    member: ClassVar = "dataset_diabetes/diabetic_data.csv"  # of the zip file

    def required_files(self) -> tuple[str, ...]:
        """The zip file, or the folder in it."""
        return tuple(file.removesuffix(".zip") for file in declared(self.name).files)

    def blocks(self, files: Files, file: str) -> Iterable[bytes]:
        content = unzipped(files.packed(file, self.member), file, self.member)
        files.note(f"{file.rpartition('/')[0]}/{self.member}", content)
        return [content]

    def read(self, files: Files, splits: int) -> TypedTable:
        parameters, (file,) = self.parameters, declared(self.name).files
        columns = declared(self.name).columns
        table = self.typed(files, file).replace(
            {name: {"?": MISSING} for name in columns if columns[name] == "text"}
        )
        table = table[table["race"] != "?"].copy()
        table["race"] = without(table["race"], "?")
        if parameters.encounters == "first":
            table = table.drop_duplicates("patient_nbr")
        if parameters.died == "drop":
            deaths = ["11", "13", "14", "19", "20", "21"]  # or hospice care
            table = table[~table["discharge_disposition_id"].isin(deaths)]
        positive = ["<30", ">30"] if parameters.target == "any" else ["<30"]
        attributes = self.attributes(table)
        del table["admission_source_id"]
        patients, readmitted = table.pop("patient_nbr"), table.pop("readmitted").isin(positive)
        for name in map(str, table):
            if columns[name] in ("text", columns["insulin"]):
                table[name] = frequent(table[name], 0.01)
        return TypedTable(
            features=table,
            target=two_categories(readmitted, ("not readmitted", "readmitted")),
            attributes=attributes,
            domain="admission_source_id",
            units=patients if parameters.unit == "patient" else table.index.to_series(),
        )


class Students(PublicTable):
    """Student performance: final grades at two Portuguese schools (Cortez and Silva 2008).

    Thirty facts about a student and two earlier grades. The outcome is ``G3``, from 0 to 20, as in
    the file. Of the 33 columns that the source counts 32 are features. Attributes are ``age`` in
    years (15 to 22, continuous) and ``sex``.

    Source: "FairCOCCO", B.1.2 and Table 7.
    """

    name = "students"

    class Parameters(FaircoccoParameters):
        """Parameters of student performance.

        Attributes:
            subject: the course: Portuguese (649 students), as in the source, or maths (395, of
                whom 382 take both courses).
            target: the final ``grade``, as in the source, or ``passed``, a grade from 10.
            past_grades: keep the grades of the first and second period among the features, as in
                the source; with them the final grade is nearly known.
            domain: ``school`` makes the school the domain, which is then no feature.
        """

        subject: Literal["portuguese", "maths"] = "portuguese"
        target: Literal["grade", "passed"] = "grade"
        past_grades: bool = True
        domain: Literal["", "school"] = ""
        sensitive: tuple[Literal["age", "sex"], ...] = ("age", "sex")

    def required_files(self) -> tuple[str, ...]:
        portuguese, maths = declared(self.name).files
        return (portuguese if self.parameters.subject == "portuguese" else maths,)

    def read(self, files: Files, splits: int) -> TypedTable:
        parameters, table = self.parameters, self.typed(files)
        grade = table.pop("G3")
        passed = two_categories(grade >= 10, ("failed", "passed"))
        attributes = self.attributes(table)
        if parameters.domain:
            attributes["school"] = table.pop("school")
        return TypedTable(
            features=table if parameters.past_grades else table.drop(columns=["G1", "G2"]),
            target=passed if parameters.target == "passed" else grade,
            attributes=attributes,
            domain=parameters.domain,
        )
