"""Kedro dataset classes: versioned, atomic, without pickle."""
