"""Values with their uncertainty, and verdicts about changes."""
