"""Names of metrics; written by docs/stub.py."""

from typing import Any, Protocol

from robust_fairness.metrics.base import NotApplicable as NotApplicable
from robust_fairness.metrics.base import RowValues as RowValues
from robust_fairness.metrics.base import Score as Score
from robust_fairness.metrics.base import Undefined as Undefined
from robust_fairness.metrics.base import measure as measure
from robust_fairness.metrics.base import quantity as quantity
from robust_fairness.metrics.evaluation import count as count
from robust_fairness.metrics.evaluation import evaluate as evaluate
from robust_fairness.metrics.find import Metric as Metric
from robust_fairness.metrics.find import all_metrics as all_metrics
from robust_fairness.metrics.find import find_metric as find_metric
from robust_fairness.metrics.find import metric_names as metric_names
from robust_fairness.metrics.find import parse_metrics as parse_metrics
from robust_fairness.metrics.functions import metric_function as metric_function
from robust_fairness.metrics.gaps import Gap as Gap
from robust_fairness.metrics.gaps import gap as gap

class Function(Protocol):
    """Value of a metric, see ``metric_function``."""

    def __call__(
        self,
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        pos_label: Any = None,
        **arrays: Any,
    ) -> float: ...


class ByGroup(Protocol):
    """Value of a metric by group, see ``metric_function``."""

    def __call__(
        self,
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        pos_label: Any = None,
        **arrays: Any,
    ) -> dict[str, float]: ...

accuracy: Function
accuracy_at: Function
accuracy_by_group: ByGroup
accuracy_by_subgroup: ByGroup
accuracy_difference: Function
accuracy_halves_gap: Function
accuracy_light_dark_gap: Function
accuracy_majority_gap: Function
accuracy_one_vs_rest_difference: Function
accuracy_ratio: Function
accuracy_worst_gap: Function
balanced_accuracy: Function
balanced_accuracy_by_group: ByGroup
balanced_accuracy_by_subgroup: ByGroup
balanced_accuracy_difference: Function
balanced_accuracy_halves_gap: Function
balanced_accuracy_light_dark_gap: Function
balanced_accuracy_majority_gap: Function
balanced_accuracy_one_vs_rest_difference: Function
balanced_accuracy_ratio: Function
balanced_accuracy_worst_gap: Function
brier_score: Function
brier_score_by_group: ByGroup
brier_score_by_subgroup: ByGroup
brier_score_difference: Function
brier_score_halves_gap: Function
brier_score_light_dark_gap: Function
brier_score_majority_gap: Function
brier_score_one_vs_rest_difference: Function
brier_score_ratio: Function
brier_score_worst_gap: Function
constant_accuracy: Function
curvature: Function
curvature_by_group: ByGroup
curvature_by_subgroup: ByGroup
curvature_difference: Function
curvature_halves_gap: Function
curvature_light_dark_gap: Function
curvature_majority_gap: Function
curvature_one_vs_rest_difference: Function
curvature_ratio: Function
curvature_worst_gap: Function
delta_dp: ByGroup
delta_dp_one_vs_rest: Function
delta_eo: ByGroup
delta_eo_one_vs_rest: Function
delta_eopp: ByGroup
delta_er: Function
delta_er_large_bandwidths: Function
delta_er_one_shot: Function
delta_er_small_bandwidths: Function
demographic_parity_difference: ByGroup
demographic_parity_ratio: ByGroup
disparate_impact: ByGroup
disparate_impact_by_group: ByGroup
equal_opportunity_difference: ByGroup
equal_opportunity_ratio: ByGroup
equalized_odds_difference: ByGroup
equalized_odds_ratio: ByGroup
expected_calibration_error: Function
expected_calibration_error_by_group: ByGroup
expected_calibration_error_by_subgroup: ByGroup
expected_calibration_error_difference: Function
expected_calibration_error_halves_gap: Function
expected_calibration_error_light_dark_gap: Function
expected_calibration_error_majority_gap: Function
expected_calibration_error_one_vs_rest_difference: Function
expected_calibration_error_ratio: Function
expected_calibration_error_worst_gap: Function
faircocco_cal: Function
faircocco_cal_p_value: Function
faircocco_dp: Function
faircocco_dp_p_value: Function
faircocco_eo: Function
faircocco_eo_p_value: Function
false_negative_rate: Function
false_negative_rate_by_group: ByGroup
false_negative_rate_by_subgroup: ByGroup
false_negative_rate_difference: Function
false_negative_rate_halves_gap: Function
false_negative_rate_light_dark_gap: Function
false_negative_rate_majority_gap: Function
false_negative_rate_one_vs_rest_difference: Function
false_negative_rate_ratio: Function
false_negative_rate_worst_gap: Function
false_positive_rate: Function
false_positive_rate_by_group: ByGroup
false_positive_rate_by_subgroup: ByGroup
false_positive_rate_difference: Function
false_positive_rate_halves_gap: Function
false_positive_rate_light_dark_gap: Function
false_positive_rate_majority_gap: Function
false_positive_rate_one_vs_rest_difference: Function
false_positive_rate_ratio: Function
false_positive_rate_worst_gap: Function
head_accuracy: Function
head_tail_difference: Function
log_loss: Function
log_loss_by_group: ByGroup
log_loss_by_subgroup: ByGroup
log_loss_difference: Function
log_loss_halves_gap: Function
log_loss_light_dark_gap: Function
log_loss_majority_gap: Function
log_loss_one_vs_rest_difference: Function
log_loss_ratio: Function
log_loss_worst_gap: Function
macro_precision: Function
macro_precision_by_group: ByGroup
macro_precision_by_subgroup: ByGroup
macro_precision_difference: Function
macro_precision_halves_gap: Function
macro_precision_light_dark_gap: Function
macro_precision_majority_gap: Function
macro_precision_one_vs_rest_difference: Function
macro_precision_present: Function
macro_precision_present_by_group: ByGroup
macro_precision_present_by_subgroup: ByGroup
macro_precision_present_difference: Function
macro_precision_present_halves_gap: Function
macro_precision_present_light_dark_gap: Function
macro_precision_present_majority_gap: Function
macro_precision_present_one_vs_rest_difference: Function
macro_precision_present_ratio: Function
macro_precision_present_worst_gap: Function
macro_precision_ratio: Function
macro_precision_worst_gap: Function
macro_recall: Function
macro_recall_by_group: ByGroup
macro_recall_by_subgroup: ByGroup
macro_recall_difference: Function
macro_recall_halves_gap: Function
macro_recall_light_dark_gap: Function
macro_recall_majority_gap: Function
macro_recall_one_vs_rest_difference: Function
macro_recall_ratio: Function
macro_recall_worst_gap: Function
majority_accuracy: Function
majority_minority_difference: Function
mean_absolute_error: Function
mean_absolute_error_by_group: ByGroup
mean_absolute_error_difference: Function
mean_absolute_error_halves_gap: Function
mean_absolute_error_light_dark_gap: Function
mean_absolute_error_majority_gap: Function
mean_absolute_error_one_vs_rest_difference: Function
mean_absolute_error_ratio: Function
mean_absolute_error_worst_gap: Function
mean_accuracy_at: Function
mean_calibration_error: Function
mean_calibration_error_by_group: ByGroup
mean_calibration_error_by_subgroup: ByGroup
mean_calibration_error_difference: Function
mean_calibration_error_halves_gap: Function
mean_calibration_error_light_dark_gap: Function
mean_calibration_error_majority_gap: Function
mean_calibration_error_one_vs_rest_difference: Function
mean_calibration_error_ratio: Function
mean_calibration_error_worst_gap: Function
mean_error: Function
mean_error_by_group: ByGroup
mean_error_difference: Function
mean_error_halves_gap: Function
mean_error_light_dark_gap: Function
mean_error_majority_gap: Function
mean_error_one_vs_rest_difference: Function
mean_error_ratio: Function
mean_error_worst_gap: Function
mean_group_accuracy: Function
mean_group_balanced_accuracy: Function
mean_group_brier_score: Function
mean_group_curvature: Function
mean_group_expected_calibration_error: Function
mean_group_false_negative_rate: Function
mean_group_false_positive_rate: Function
mean_group_log_loss: Function
mean_group_macro_precision: Function
mean_group_macro_precision_present: Function
mean_group_macro_recall: Function
mean_group_mean_absolute_error: Function
mean_group_mean_calibration_error: Function
mean_group_mean_error: Function
mean_group_mean_squared_error: Function
mean_group_negative_alignment: Function
mean_group_nmi: Function
mean_group_positive_alignment: Function
mean_group_precision: Function
mean_group_recall_at: Function
mean_group_roc_auc: Function
mean_group_selection_rate: Function
mean_group_true_negative_rate: Function
mean_group_true_positive_rate: Function
mean_group_u_kl: Function
mean_group_unexplained_variance: Function
mean_majority_minority_difference: Function
mean_squared_error: Function
mean_squared_error_by_group: ByGroup
mean_squared_error_difference: Function
mean_squared_error_halves_gap: Function
mean_squared_error_light_dark_gap: Function
mean_squared_error_majority_gap: Function
mean_squared_error_one_vs_rest_difference: Function
mean_squared_error_ratio: Function
mean_squared_error_worst_gap: Function
minority_accuracy: Function
negative_alignment: Function
negative_alignment_by_group: ByGroup
negative_alignment_by_subgroup: ByGroup
negative_alignment_difference: Function
negative_alignment_halves_gap: Function
negative_alignment_light_dark_gap: Function
negative_alignment_majority_gap: Function
negative_alignment_one_vs_rest_difference: Function
negative_alignment_ratio: Function
negative_alignment_worst_gap: Function
nmi: Function
nmi_by_group: ByGroup
nmi_by_subgroup: ByGroup
nmi_difference: Function
nmi_halves_gap: Function
nmi_light_dark_gap: Function
nmi_majority_gap: Function
nmi_one_vs_rest_difference: Function
nmi_ratio: Function
nmi_worst_gap: Function
positive_alignment: Function
positive_alignment_by_group: ByGroup
positive_alignment_by_subgroup: ByGroup
positive_alignment_difference: Function
positive_alignment_halves_gap: Function
positive_alignment_light_dark_gap: Function
positive_alignment_majority_gap: Function
positive_alignment_one_vs_rest_difference: Function
positive_alignment_ratio: Function
positive_alignment_worst_gap: Function
precision: Function
precision_by_group: ByGroup
precision_by_subgroup: ByGroup
precision_difference: Function
precision_halves_gap: Function
precision_light_dark_gap: Function
precision_majority_gap: Function
precision_one_vs_rest_difference: Function
precision_ratio: Function
precision_worst_gap: Function
probability_shares_by_group: ByGroup
probability_shares_by_subgroup: ByGroup
recall_at: Function
recall_at_by_group: ByGroup
recall_at_by_subgroup: ByGroup
recall_at_difference: Function
recall_at_halves_gap: Function
recall_at_light_dark_gap: Function
recall_at_majority_gap: Function
recall_at_one_vs_rest_difference: Function
recall_at_ratio: Function
recall_at_worst_gap: Function
roc_auc: Function
roc_auc_by_group: ByGroup
roc_auc_by_subgroup: ByGroup
roc_auc_difference: Function
roc_auc_halves_gap: Function
roc_auc_light_dark_gap: Function
roc_auc_majority_gap: Function
roc_auc_one_vs_rest_difference: Function
roc_auc_ratio: Function
roc_auc_worst_gap: Function
selection_rate: Function
selection_rate_by_group: ByGroup
selection_rate_by_subgroup: ByGroup
selection_rate_difference: Function
selection_rate_halves_gap: Function
selection_rate_light_dark_gap: Function
selection_rate_majority_gap: Function
selection_rate_one_vs_rest_difference: Function
selection_rate_ratio: Function
selection_rate_worst_gap: Function
tail_accuracy: Function
true_negative_rate: Function
true_negative_rate_by_group: ByGroup
true_negative_rate_by_subgroup: ByGroup
true_negative_rate_difference: Function
true_negative_rate_halves_gap: Function
true_negative_rate_light_dark_gap: Function
true_negative_rate_majority_gap: Function
true_negative_rate_one_vs_rest_difference: Function
true_negative_rate_ratio: Function
true_negative_rate_worst_gap: Function
true_positive_rate: Function
true_positive_rate_by_group: ByGroup
true_positive_rate_by_subgroup: ByGroup
true_positive_rate_difference: Function
true_positive_rate_halves_gap: Function
true_positive_rate_light_dark_gap: Function
true_positive_rate_majority_gap: Function
true_positive_rate_one_vs_rest_difference: Function
true_positive_rate_ratio: Function
true_positive_rate_worst_gap: Function
u_kl: Function
u_kl_by_group: ByGroup
u_kl_by_subgroup: ByGroup
u_kl_difference: Function
u_kl_halves_gap: Function
u_kl_light_dark_gap: Function
u_kl_majority_gap: Function
u_kl_one_vs_rest_difference: Function
u_kl_ratio: Function
u_kl_worst_gap: Function
unbiased_accuracy: Function
unexplained_variance: Function
unexplained_variance_by_group: ByGroup
unexplained_variance_difference: Function
unexplained_variance_halves_gap: Function
unexplained_variance_light_dark_gap: Function
unexplained_variance_majority_gap: Function
unexplained_variance_one_vs_rest_difference: Function
unexplained_variance_ratio: Function
unexplained_variance_worst_gap: Function
worst_group_accuracy: Function
worst_group_balanced_accuracy: Function
worst_group_brier_score: Function
worst_group_curvature: Function
worst_group_expected_calibration_error: Function
worst_group_false_negative_rate: Function
worst_group_false_positive_rate: Function
worst_group_log_loss: Function
worst_group_macro_precision: Function
worst_group_macro_precision_present: Function
worst_group_macro_recall: Function
worst_group_mean_absolute_error: Function
worst_group_mean_calibration_error: Function
worst_group_mean_error: Function
worst_group_mean_squared_error: Function
worst_group_negative_alignment: Function
worst_group_nmi: Function
worst_group_positive_alignment: Function
worst_group_precision: Function
worst_group_recall_at: Function
worst_group_roc_auc: Function
worst_group_selection_rate: Function
worst_group_true_negative_rate: Function
worst_group_true_positive_rate: Function
worst_group_u_kl: Function
worst_group_unexplained_variance: Function
worst_subgroup_accuracy: Function
worst_subgroup_balanced_accuracy: Function
worst_subgroup_brier_score: Function
worst_subgroup_curvature: Function
worst_subgroup_expected_calibration_error: Function
worst_subgroup_false_negative_rate: Function
worst_subgroup_false_positive_rate: Function
worst_subgroup_log_loss: Function
worst_subgroup_macro_precision: Function
worst_subgroup_macro_precision_present: Function
worst_subgroup_macro_recall: Function
worst_subgroup_mean_calibration_error: Function
worst_subgroup_negative_alignment: Function
worst_subgroup_nmi: Function
worst_subgroup_positive_alignment: Function
worst_subgroup_precision: Function
worst_subgroup_recall_at: Function
worst_subgroup_roc_auc: Function
worst_subgroup_selection_rate: Function
worst_subgroup_true_negative_rate: Function
worst_subgroup_true_positive_rate: Function
worst_subgroup_u_kl: Function

def __getattr__(name: str) -> Any: ...  # metrics of plug-ins
