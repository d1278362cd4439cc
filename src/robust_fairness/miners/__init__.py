"""Miners of deep metric learning, one a file: which triplets of a batch a loss is taken of."""
