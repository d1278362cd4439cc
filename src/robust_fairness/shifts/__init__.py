"""Distribution shifts, one class per file: of samples, or of the latents of generated images."""
