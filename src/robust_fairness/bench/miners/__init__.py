"""Miners of deep metric learning: which triplets of a batch a loss is taken of."""
