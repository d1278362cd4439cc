"""Networks: one family a file, each offering ``Parameters`` and ``build``.

Every network serves a *stack* of replicas at once: inputs, features and outputs carry a leading
replica axis, and so do all parameters. Nothing mixes replicas, so that a stack gives what its
replicas give one by one.
"""
