"""What ``import robust_fairness as rf`` offers: the library without Kedro."""
