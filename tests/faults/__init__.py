"""Faults: killed processes, two owners, full disks, damaged and hostile files."""
