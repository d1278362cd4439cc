"""Training methods; ``methods.base.Method`` documents what a method is."""
