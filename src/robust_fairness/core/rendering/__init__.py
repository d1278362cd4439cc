"""Figures and HTML, shared by the report and the audit."""
