"""The pipelines, thin: a node unpacks, calls a room and returns.

Node functions import the rooms they call when they run, so that listing pipelines loads neither
torch nor pandas. For the same reason only parameters are annotated with their types, which Kedro
checks before a run; samples, models and tables are ``Any`` here and typed in the rooms.
"""
