"""The experiment: its datasets, cells, search stages and their typed parameters."""
