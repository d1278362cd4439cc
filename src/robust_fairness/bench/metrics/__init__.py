"""Metrics that need torch, or what only training knows."""
