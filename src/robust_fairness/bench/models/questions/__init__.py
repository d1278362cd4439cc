"""Networks for questions on images, one per file."""
