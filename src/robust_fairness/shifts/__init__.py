"""Distribution shifts, one a file: of given samples, or of the latents that pictures are made from.

Each offers ``Parameters``, ``check(severity)`` and ``apply(samples, severity, parameters)``, or,
in the place of ``apply``, ``subset(z, severity, targets, parameters)``.
"""
