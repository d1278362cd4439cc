"""``mlflow.models.evaluate(evaluators="robust_fairness")``: an audit as an evaluator of MLflow.

MLflow finds it by the entry point ``mlflow.model_evaluator`` of the installed package.
"""

import logging
from typing import Any

import mlflow
from mlflow.models.evaluation.artifacts import TextEvaluationArtifact
from mlflow.models.evaluation.base import EvaluationResult, ModelEvaluator
from mlflow.models.evaluation.validation import ModelValidationFailedException

from robust_fairness.core import tables

LOGGER = logging.getLogger(__name__)
FOLDER = "robust_fairness"
KINDS = {"classifier": False, "regressor": True}  # whether the target is continuous


class Evaluator(ModelEvaluator):
    """Logs the values of an audit with their bounds, its page and its table.

    ``evaluator_config`` has the arguments of ``rf.audit``, of which ``sensitive_features`` is
    needed: names of columns of the data, or values, one per row; and ``fail_if``, gates that are
    judged on the page. What columns are taken for is a warning in the log.
    """

    def can_evaluate(
        self, *, model_type: str | None, evaluator_config: dict[str, Any], **_: Any
    ) -> bool:
        """Classifiers and regressors, where the configuration names sensitive features.

        Else not: MLflow asks every installed evaluator if a call names none of them.
        """
        return model_type in KINDS and "sensitive_features" in evaluator_config

    def evaluate(
        self,
        *,
        model_type: str,
        dataset: Any,
        run_id: str,
        evaluator_config: dict[str, Any],
        model: Any = None,
        predictions: str | None = None,
        **_: Any,
    ) -> EvaluationResult:
        """The metrics of ``Audit.metrics`` and the artifacts, which are also logged to the run.

        Raises:
            InputError: ``rf.audit`` refuses the configuration.
            ModelValidationFailedException: a gate fails; everything is logged before.
        """
        import robust_fairness as rf

        options = {**evaluator_config}
        gates = options.pop("fail_if", ())
        predicted = dataset.predictions_data
        if model is not None:
            predicted = model.predict(dataset.features_data)
            if predictions is not None:
                predicted = predicted[predictions]
        table = dataset.features_data
        if KINDS[model_type]:
            options["continuous"] = True
        done = rf.audit(
            table, y_true=dataset.labels_data, y_pred=predicted, name=dataset.name, **options
        )
        for hint in done.hints:
            LOGGER.warning(hint)
        page, values = done.to_html(fail_if=gates), done.metrics()
        texts = {"audit.html": page, "audit.csv": tables.csv(done.to_frame())}
        client, artifacts = mlflow.MlflowClient(), {}
        mlflow.log_metrics(values, run_id=run_id)
        for name, text in texts.items():
            client.log_text(run_id, text, f"{FOLDER}/{name}")
            uri = f"runs:/{run_id}/{FOLDER}/{name}"
            artifacts[f"{FOLDER}/{name}"] = TextEvaluationArtifact(uri=uri, content=text)
        if failures := done.judged(gates).failed:
            raise ModelValidationFailedException("; ".join(failures))
        return EvaluationResult(metrics=values, artifacts=artifacts, run_id=run_id)
