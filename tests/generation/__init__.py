"""Tests of generated families."""
