"""What every package needs: errors, plug-ins, random streams, files and tables."""
