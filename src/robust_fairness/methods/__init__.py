"""Training methods, one per file; ``methods.base.Method`` documents what a method is."""
