"""Objectives of deep metric learning, one a file: the loss of a batch of embeddings."""
