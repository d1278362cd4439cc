"""Networks, one per file; ``models.base.Model`` documents what a network is."""
