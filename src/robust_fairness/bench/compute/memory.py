"""Memory of the process: large tensors stay with it between the steps of a training."""

import ctypes
from functools import cache

# <malloc.h>
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
MOST = 2**31 - 1


@cache
def keep_freed_memory() -> bool:
    """Let glibc keep freed memory for this process; returns whether the C library is glibc.

    Otherwise it gives tensors above 32 MiB, and the end of the heap, back to the kernel at every
    step and gets them again page by page, a third of the time of a step on images. No number
    depends on it; memory that a process once needed stays its own until it ends.
    """
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(M_MMAP_MAX, 0) and mallopt(M_TRIM_THRESHOLD, MOST))
