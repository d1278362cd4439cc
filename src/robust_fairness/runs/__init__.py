"""Runs: configuration, runners, provenance, tracking, serving and the pages of Kedro-Viz."""
