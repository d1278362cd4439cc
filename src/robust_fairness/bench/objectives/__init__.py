"""Objectives of deep metric learning: the loss of a batch of embeddings."""
