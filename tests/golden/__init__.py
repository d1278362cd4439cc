"""Numbers of this version, which later versions are compared with."""
