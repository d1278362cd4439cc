"""What training and generation share: devices, optimisers, locks, memory, progress."""
