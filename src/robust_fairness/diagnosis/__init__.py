"""Why a model does otherwise in another domain: what differs, and how much each part explains.

``runs.diagnose`` and ``unprocessing.frontier`` are of runs, ``periods.explained`` of audits, which
need no torch.
"""
