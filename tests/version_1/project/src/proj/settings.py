# Settings of the project: those of robust_fairness; add hooks of your own to HOOKS.
from robust_fairness.settings import *  # noqa: F403
