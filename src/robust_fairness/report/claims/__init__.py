"""What the five papers claim, and the verdict of scores: an effect per claim, see ``papers``."""
