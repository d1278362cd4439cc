"""Scripts of the documentation: its site, generated tables and pictures."""
