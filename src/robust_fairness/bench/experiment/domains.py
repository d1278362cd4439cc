"""Which domains are trained on, and the designs that train on several sets of them."""

from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, PlainValidator, model_validator

from robust_fairness.bench.experiment.plugins import Settings


def _texts(value: object) -> object:
    """Whole numbers of YAML, such as years, as text."""
    if isinstance(value, list | tuple):
        return tuple(str(item) if type(item) is int else item for item in value)
    return value


def _designed(value: object) -> object:
    """One of ``SEVERAL``, or names of domains; one error for both."""
    names = _texts(value)
    if value in SEVERAL or (isinstance(names, tuple) and all(type(name) is str for name in names)):
        return names
    raise ValueError(f"allowed: a list of domains, or {', '.join(SEVERAL)}")


Names = Annotated[tuple[str, ...], BeforeValidator(_texts)]
Several = Literal["each", "all_but_each", "before_each"]
SEVERAL = get_args(Several)


def _require_each_once(names: tuple[str, ...]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name} is given twice, allowed: each once")


class Domains(Settings):
    """The domains of a training; every domain that is not trained on is a test set of its own.

    Attributes:
        train: the domains that are trained on; by default all but those of the other fields.
        validation: domains out of distribution for validation, the part ``ood_val``.
        test: domains that are tested on out of distribution; all others by default.
        rows: the rows of other domains that are used: ``all``, or those of their ``test`` parts,
            so that trainings on different domains are compared on the same rows.
    """

    train: Names = ()
    validation: Names = ()
    test: Names = ()
    rows: Literal["all", "test"] = "all"

    @property
    def named(self) -> tuple[str, ...]:
        """All domains of its fields."""
        return (*self.train, *self.validation, *self.test)

    @model_validator(mode="after")
    def _apart(self) -> "Domains":
        _require_each_once(self.named)
        return self


class Design(Settings):
    """Domains as configuration writes them: of one training, or of several.

    Attributes:
        train: the domains that are trained on, or ``each`` of ``names``, ``all_but_each`` of them
            (leave one out), or those ``before_each`` of them (the past).
        names: the domains that are used, in their order; required by a design of several
            trainings.
        validation, test, rows: as of ``Domains``.
    """

    train: Annotated[Several | tuple[str, ...], PlainValidator(_designed)] = ()
    names: Names = ()
    validation: Names = ()
    test: Names = ()
    rows: Literal["all", "test"] = "all"

    @model_validator(mode="after")
    def _complete(self) -> "Design":
        _require_each_once(self.names)
        if isinstance(self.train, str):
            if len(self.names) < 2:
                raise ValueError(f"names: train: {self.train} needs two domains or more")
            if self.validation or self.test:
                raise ValueError(f"validation and test are not allowed with train: {self.train}")
        if not self.train and not self.test:
            raise ValueError("train and test are missing, allowed: one of them, or both")
        self.trainings()
        return self

    def trainings(self) -> dict[str, Domains]:
        """The domains of every training, by the end of the dataset's name, "" for a single one."""
        names, rows = self.names, self.rows
        match self.train:
            case "each":
                return {name: self._of((name,)) for name in names}
            case "all_but_each":
                left = {out: tuple(name for name in names if name != out) for out in names}
                return {
                    f"without_{out}": Domains(train=kept, test=(out,), rows=rows)
                    for out, kept in left.items()
                }
            case "before_each":
                return {
                    f"before_{name}": self._of(names[:place])
                    for place, name in enumerate(names)
                    if place
                }
        return {"": self._of(tuple(self.train))}

    def _of(self, train: tuple[str, ...]) -> Domains:
        """A training on some domains, and tests on the others of ``names``."""
        used = {*train, *self.validation}
        test = self.test or tuple(name for name in self.names if name not in used)
        return Domains(train=train, validation=self.validation, test=test, rows=self.rows)
