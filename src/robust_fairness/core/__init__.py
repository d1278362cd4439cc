"""What every package needs: errors, plug-ins, random streams, files, checkpoints and tables."""
