"""The methods of the study of bias mitigation, by what they are told."""

PAPER = "bias_mitigation"
STANDARD = "erm"
IMPLICIT = ("lff", "spectral_decoupling")
EXPLICIT = ("group_upweighting", "group_dro", "rubi", "lnl", "irmv1")
TOLD_GROUPS = (*EXPLICIT, "adv_debias", "laftr", "cuma")
