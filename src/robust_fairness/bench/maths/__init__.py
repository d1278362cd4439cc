"""Formulas of papers on tensors and arrays: kernels, curvature, dependence, neighbours."""
