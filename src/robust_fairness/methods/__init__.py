"""Methods: how a network is trained fairly, one a file.

A method says only what its paper adds: it *yields its steps*, each a loss for one or several
players. The loop in ``training`` owns optimisers, schedules, devices, replicas and checkpoints.
"""
