"""Distribution shifts: samples to shifted samples, one shift a file.

Each offers ``Parameters``, ``check(severity)`` and ``apply(samples, severity, parameters)``.
"""
