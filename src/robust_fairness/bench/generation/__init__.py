"""Generated families: a diffusion model as a decoder, and subsets of its latent space."""
