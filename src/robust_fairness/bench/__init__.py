"""Training and evaluating models under shifts: the benchmark."""
