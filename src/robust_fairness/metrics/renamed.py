"""Names that metrics had before, and what they are called now."""

BY_GROUP = (
    "accuracy", "mean_squared_error", "curvature", "true_positive_rate", "true_negative_rate",
    "recall_at", "nmi", "u_kl", "positive_alignment", "negative_alignment", "probability_shares",
)  # fmt: skip
AVERAGES = {
    "precision": "macro_precision",
    "recall": "macro_recall",
    "precision_present": "macro_precision_present",
    "recall_present": "balanced_accuracy",
}
GAPS = ("majority_gap", "worst_gap", "halves_gap", "light_dark_gap")
FORMS = {
    "group_{}": "{}_by_group",
    "worst_group_{}": "worst_group_{}",
    **{f"{{}}_{gap}": f"{{}}_{gap}" for gap in GAPS},
}
RENAMED = {
    **{f"group_{name}": f"{name}_by_group" for name in BY_GROUP},
    "group_positive_rate": "selection_rate_by_group",
    "class_group_accuracy": "accuracy_by_subgroup",
    "class_group_probability_shares": "probability_shares_by_subgroup",
    "equal_opportunity": "equal_opportunity_difference",
    "macro_recall_present": "balanced_accuracy",
    **{
        before.format(old): now.format(new)
        for old, new in AVERAGES.items()
        for before, now in FORMS.items()
    },
}
