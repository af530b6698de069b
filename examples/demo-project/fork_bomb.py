# SPDX-License-Identifier: Apache-2.0
"""Forks until something stops it; bounded, so that it is harmless even where nothing does."""
import os
import sys
import time

children = 0
try:
    for _ in range(2000):
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        children += 1
except OSError as error:
    print(f"stopped after {children} children: {error.strerror}")
    sys.exit(1)
print(f"nobody stopped {children} children")
