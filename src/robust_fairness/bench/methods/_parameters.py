"""Hyperparameters that methods share; they need no torch."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field

from robust_fairness.core.registry import Plugin, PluginParameters

Subgroups = Literal["group_and_class", "group", "class", "domain"]
Information = Literal["groups", "domains", "target rows"]

# What a method must read in order to know the subgroups.
SEEN: dict[Subgroups, tuple[Information, ...]] = {
    "group_and_class": ("groups",),
    "group": ("groups",),
    "class": (),
    "domain": ("domains",),
}


class MethodParameters(PluginParameters):
    """Hyperparameters of a method.

    Float fields may differ between the replicas of a stack: the method receives them as tensors
    ``[replica]``. Replicas that differ in any other field train in separate stacks.

    ``warm_up_epochs``: epochs of plain training at the start, with a learning rate schedule of
    their own; the method continues with the trained network.
    """

    warm_up_epochs: int = Field(0, ge=0)

    @property
    def bias_variables(self) -> tuple[str, ...]:
        """Names of the attributes to mitigate; empty for the dataset's sensitive ones."""
        return ()

    @property
    def subgroup_definition(self) -> Subgroups:
        """What a subgroup is: a group and a class together, or one of group, class and domain."""
        return "group_and_class"

    @property
    def sees(self) -> tuple[Information, ...]:
        """What the method reads besides inputs and labels of the training rows.

        ``groups`` and ``domains`` are those of training rows; ``target rows`` are inputs of rows
        out of distribution, without labels.
        """
        return ()


class GroupMethodParameters(MethodParameters):
    """Hyperparameters of a group-aware method.

    ``explicit`` names the attributes that define the groups (b_expl of the bias mitigation study);
    default: the dataset's ``sensitive`` ones.
    """

    explicit: tuple[str, ...] = ()

    @property
    def bias_variables(self) -> tuple[str, ...]:
        return self.explicit

    @property
    def sees(self) -> tuple[Information, ...]:
        return ("groups",)


class SubgroupMethodParameters(GroupMethodParameters):
    """Hyperparameters of a method that weights or draws rows by subgroup.

    ``subgroups``: a group and a class together, or one of group, class and domain. Methods that
    need environments take the subgroups.
    """

    subgroups: Subgroups = "group_and_class"

    @property
    def subgroup_definition(self) -> Subgroups:
        return self.subgroups

    @property
    def sees(self) -> tuple[Information, ...]:
        return SEEN[self.subgroups]


class Declaration(Plugin):
    """What a method says of itself without torch; see ``methods.base.Method``."""

    Parameters: ClassVar[type[BaseModel]] = MethodParameters
    estimators: ClassVar[Literal["no", "also", "only"]] = "no"
    binary_only: ClassVar[bool] = False
    default_network: ClassVar[str | Mapping[str, Any]] = "mlp"
    reads: ClassVar[tuple[Literal["sample_weight", "attributes"], ...]] = ()


class ErmDeclaration(Declaration):
    """Minimise the mean loss of the batch, weighted by ``sample_weight`` and ``row_weight``.

    Fails for rare subgroups, whose losses hardly count, if they contradict the others.
    """

    estimators: ClassVar[Literal["no", "also", "only"]] = "also"
    reads = ("sample_weight",)
