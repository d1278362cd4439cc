"""Distribution shifts: of samples, or of the latents of generated images."""
