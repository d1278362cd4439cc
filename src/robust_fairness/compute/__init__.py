"""What training and generation share: devices, optimisers, memory, progress."""
