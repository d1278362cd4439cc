"""Networks; ``models.base.Model`` documents what a network is."""
