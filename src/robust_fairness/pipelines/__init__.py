"""The pipelines: lists of nodes, whose functions call the packages and return.

Node functions import what they call when they run, so that listing pipelines loads neither torch
nor pandas. For the same reason only parameters are annotated with their types; samples, models and
tables are ``Any`` here and typed in the packages.
"""
