"""Why a model does otherwise in another domain: what differs, and how much each part explains.

``decomposition`` takes rows of two domains; ``bench.diagnosis`` applies it to a run and
``periods.explained`` to an audit.
"""
