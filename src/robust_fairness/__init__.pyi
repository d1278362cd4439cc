"""Names of the package; written by docs/stub.py."""

from typing import Any, Literal, TypedDict, Unpack

from robust_fairness import metrics as metrics
from robust_fairness.library.auditing import audit as audit
from robust_fairness.library.estimators import FairClassifier
from robust_fairness.library.listing import networks as networks
from robust_fairness.library.training import evaluate as evaluate
from robust_fairness.library.training import load as load
from robust_fairness.library.training import train as train

__version__: str

def datasets() -> list[str]: ...
def methods() -> list[str]: ...
def shifts() -> list[str]: ...

class Options(TypedDict, total=False):
    """Options of every method."""

    network: str | dict[str, Any] | None
    random_state: int
    validation_fraction: float
    epochs: int | None
    batch_size: int | None
    learning_rate: float | None
    weight_decay: float | None
    preprocessing: Literal['standardise', 'pca', 'zca', 'none'] | None

class AdvDebias(FairClassifier):
    """Adversarial debiasing (Zhang et al. 2018), in the frame of Equalized Robustness."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        explicit: tuple[str, ...] = (),
        alpha: float = 1.0,
        update: Literal['alternating', 'reversed'] = "alternating",
        audits: Literal['features', 'outputs'] = "features",
        projection: bool = False,
        **options: Unpack[Options],
    ) -> None: ...

class ChiSquareDro(FairClassifier):
    """Distributionally robust optimisation in a chi-squared ball (Levy et al. 2020)."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        radius: float = 1.0,
        **options: Unpack[Options],
    ) -> None: ...

class Coral(FairClassifier):
    """Correlation alignment, deep CORAL (Sun and Saenko 2016)."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        weight: float = 1.0,
        align: Literal['domains', 'groups', 'target'] = "domains",
        moments: Literal['covariance', 'mean_and_covariance'] = "covariance",
        **options: Unpack[Options],
    ) -> None: ...

class Cuma(FairClassifier):
    """Curvature matching, Equalized Robustness Eqs. 4 to 11 (Wang et al. 2023)."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        explicit: tuple[str, ...] = (),
        alpha: float = 1.0,
        update: Literal['alternating', 'reversed'] = "alternating",
        audits: Literal['features', 'outputs'] = "features",
        projection: bool = False,
        gamma: float = 1.0,
        h: float = 1.0,
        bandwidths: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0),
        curvature_dropout: Literal['shared', 'off'] = "shared",
        curvature_loss: Literal['row', 'mean'] = "row",
        **options: Unpack[Options],
    ) -> None: ...

class CvarDro(FairClassifier):
    """Distributionally robust optimisation of the conditional value at risk (Levy et al. 2020)."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        worst_share: float = 0.5,
        **options: Unpack[Options],
    ) -> None: ...

class Dann(FairClassifier):
    """Domain-adversarial training, DANN (Ganin et al. 2016)."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        weight: float = 1.0,
        align: Literal['domains', 'groups', 'target'] = "domains",
        **options: Unpack[Options],
    ) -> None: ...

class Dfr(FairClassifier):
    """Train plainly, then fit the last layer to rows that the features have not seen."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        explicit: tuple[str, ...] = (),
        subgroups: Literal['group_and_class', 'group', 'class', 'domain'] = "group_and_class",
        folds: int = 5,
        inverse_penalty: float = 1.0,
        regressions: int = 10,
        **options: Unpack[Options],
    ) -> None: ...

class DfrTrain(FairClassifier):
    """Train a new head on frozen features of balanced training rows (Kirichenko et al. 2023)."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 10,
        explicit: tuple[str, ...] = (),
        subgroups: Literal['group_and_class', 'group', 'class', 'domain'] = "group_and_class",
        penalty: float = 0.0,
        **options: Unpack[Options],
    ) -> None: ...

class Donini(FairClassifier):
    """Train a linear head whose mean score is exactly the same in all groups."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        explicit: tuple[str, ...] = (),
        notion: Literal['opportunity', 'eo', 'dp'] = "opportunity",
        positive: int = 1,
        loss: Literal['hinge', 'cross_entropy'] = "hinge",
        **options: Unpack[Options],
    ) -> None: ...

class Erm(FairClassifier):
    """Minimise the mean loss of the batch, weighted by ``sample_weight`` and ``row_weight``."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        **options: Unpack[Options],
    ) -> None: ...

class ExponentiatedGradient(FairClassifier):
    """The exponentiated gradient reduction (Agarwal et al. 2018)."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        explicit: tuple[str, ...] = (),
        constraint: Literal['demographic_parity', 'equalized_odds', 'true_positive_rate_parity', 'false_positive_rate_parity'] = "equalized_odds",
        difference_bound: float = 0.01,
        eps: float = 0.01,
        iterations: int = 50,
        **options: Unpack[Options],
    ) -> None: ...

class Facl(FairClassifier):
    """Fairness-aware continuous learning (Mary et al. 2019)."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        explicit: tuple[str, ...] = (),
        weight: float = 1.0,
        notion: Literal['dp', 'eo', 'cal'] = "eo",
        **options: Unpack[Options],
    ) -> None: ...

class Faircocco(FairClassifier):
    """FairCOCCO regularisation, against any dependence on attributes (Liu et al. 2022)."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        explicit: tuple[str, ...] = (),
        weight: float = 1.0,
        notion: Literal['dp', 'eo', 'cal'] = "eo",
        extended: Literal['attribute', 'both'] = "attribute",
        standardise: bool = True,
        pivots: int = 32,
        debiased: bool = False,
        **options: Unpack[Options],
    ) -> None: ...

class Farmi(FairClassifier):
    """Fair regression by mutual information (Steinberg et al. 2020)."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        explicit: tuple[str, ...] = (),
        weight: float = 1.0,
        notion: Literal['dp', 'eo', 'cal'] = "eo",
        ridge: float = 1.0,
        quadratic: bool = False,
        scale: Literal['probability', 'log_odds'] = "probability",
        **options: Unpack[Options],
    ) -> None: ...

class GridSearch(FairClassifier):
    """The grid search reduction (Agarwal et al. 2018)."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        explicit: tuple[str, ...] = (),
        constraint: Literal['demographic_parity', 'equalized_odds', 'true_positive_rate_parity', 'false_positive_rate_parity'] = "equalized_odds",
        constraint_weight: float = 0.5,
        grid_size: int = 10,
        grid_limit: float = 2.0,
        **options: Unpack[Options],
    ) -> None: ...

class GroupDro(FairClassifier):
    """Minimise the loss of the worst subgroups of attribute and class."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        explicit: tuple[str, ...] = (),
        subgroups: Literal['group_and_class', 'group', 'class', 'domain'] = "group_and_class",
        step_size: float = 0.01,
        sampler: Literal['balanced', 'shuffled_weights', 'uniform'] = "balanced",
        **options: Unpack[Options],
    ) -> None: ...

class GroupUpweighting(FairClassifier):
    """Weight each row's loss by the rarity of its subgroup (Sagawa et al. 2020)."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        explicit: tuple[str, ...] = (),
        subgroups: Literal['group_and_class', 'group', 'class', 'domain'] = "group_and_class",
        weighting: Literal['balanced', 'total_over_count', 'inverse_count'] = "balanced",
        **options: Unpack[Options],
    ) -> None: ...

class ImportanceWeighting(FairClassifier):
    """Weight rows by how much more likely their inputs are out of distribution."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        flattening: float = 1.0,
        quantile: float = 0.99,
        inverse_penalty: float = 1.0,
        **options: Unpack[Options],
    ) -> None: ...

class Irmv1(FairClassifier):
    """Require one classifier to be optimal in every environment (Arjovsky et al. 2019)."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        explicit: tuple[str, ...] = (),
        subgroups: Literal['group_and_class', 'group', 'class', 'domain'] = "group_and_class",
        weight: float = 0.01,
        environments_per_batch: int = 16,
        estimator: Literal['halves', 'squared'] = "halves",
        reduction: Literal['mean', 'sum'] = "mean",
        annealing_steps: int = 0,
        **options: Unpack[Options],
    ) -> None: ...

class Jtt(FairClassifier):
    """Train, then retrain from the start with more weight on the rows that were misclassified."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 1,
        upweight: float = 2.0,
        **options: Unpack[Options],
    ) -> None: ...

class Laftr(FairClassifier):
    """Learned adversarially fair representations (Madras et al. 2018) without the decoder."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        explicit: tuple[str, ...] = (),
        alpha: float = 1.0,
        update: Literal['alternating', 'reversed'] = "alternating",
        weighting: Literal['group', 'group_and_class'] = "group",
        **options: Unpack[Options],
    ) -> None: ...

class Lff(FairClassifier):
    """Weight rows by how much harder they are for a network trained to rely on the bias."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        amplification: float = 0.5,
        memory: float = 0.7,
        amplified_gradient: Literal['exact', 'scaled'] = "exact",
        **options: Unpack[Options],
    ) -> None: ...

class Lisa(FairClassifier):
    """Mixup of rows that share a class or a domain, but not both (Yao et al. 2022)."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        explicit: tuple[str, ...] = (),
        subgroups: Literal['group', 'domain'] = "group",
        alpha: float = 2.0,
        same_class: float = 0.5,
        **options: Unpack[Options],
    ) -> None: ...

class Lnl(FairClassifier):
    """Unlearn features from which a bias head predicts the group."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        explicit: tuple[str, ...] = (),
        gradient_factor: float = -0.1,
        entropy_weight: float = 0.01,
        passes: Literal['two', 'one'] = "two",
        layer: Literal['early', 'features'] = "early",
        head: Literal['linear', 'mlp'] = "linear",
        head_width: int = 1024,
        **options: Unpack[Options],
    ) -> None: ...

class MetricLearning(FairClassifier):
    """Train the embedding by an objective; the classifier on it is fitted afterwards."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        objective: Any = "margin",
        miner: Any = "distance_weighted",
        per_class: int = 2,
        embedding_learning_rate: float | None = None,
        **options: Unpack[Options],
    ) -> None: ...

class Mixup(FairClassifier):
    """Train on convex combinations of two rows of a batch and their labels (Zhang et al. 2018)."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        alpha: float = 0.2,
        **options: Unpack[Options],
    ) -> None: ...

class Mmd(FairClassifier):
    """Maximum mean discrepancy between the features of domains (Li et al. 2018)."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        weight: float = 1.0,
        align: Literal['domains', 'groups', 'target'] = "domains",
        gammas: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0),
        **options: Unpack[Options],
    ) -> None: ...

class Parade(FairClassifier):
    """Learn the classes and each attribute in embeddings of their own, and de-correlate them."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        explicit: tuple[str, ...] = (),
        objective: Any = "margin",
        miner: Any = "distance_weighted",
        per_class: int = 2,
        embedding_learning_rate: float | None = None,
        alpha: float = 0.3,
        rho: float = 1500.0,
        separation: Literal['mean', 'sum'] = "mean",
        attribute_objective: Any = None,
        attribute_miner: Any = None,
        hidden: int = 512,
        separation_learning_rate: float | None = 1e-05,
        **options: Unpack[Options],
    ) -> None: ...

class Rubi(FairClassifier):
    """Mask the logits by what the group alone predicts."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        explicit: tuple[str, ...] = (),
        bias_loss: Literal['logits', 'with_classifier'] = "logits",
        branch: Literal['linear', 'mlp'] = "linear",
        branch_width: int = 2048,
        **options: Unpack[Options],
    ) -> None: ...

class SpectralDecoupling(FairClassifier):
    """Penalise the squared distance of the outputs from a constant."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        weight: float = 0.001,
        shift: float = 0.001,
        penalised: Literal['all_logits', 'target_logit'] = "all_logits",
        weight_by_class: tuple[float, ...] = (),
        shift_by_class: tuple[float, ...] = (),
        **options: Unpack[Options],
    ) -> None: ...

class Subsampling(FairClassifier):
    """Train on equally many rows of every subgroup, drawn once by the seed (Idrissi et al. 2022)."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        explicit: tuple[str, ...] = (),
        subgroups: Literal['group_and_class', 'group', 'class', 'domain'] = "group_and_class",
        **options: Unpack[Options],
    ) -> None: ...

class Vrex(FairClassifier):
    """Penalise the variance of the mean losses of environments (Krueger et al. 2021)."""

    def __init__(
        self,
        *,
        warm_up_epochs: int = 0,
        explicit: tuple[str, ...] = (),
        subgroups: Literal['group_and_class', 'group', 'class', 'domain'] = "domain",
        weight: float = 10.0,
        annealing_steps: int = 0,
        **options: Unpack[Options],
    ) -> None: ...
