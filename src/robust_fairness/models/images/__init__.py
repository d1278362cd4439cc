"""Networks for images, one per file."""
