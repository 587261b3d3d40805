"""From mathematics to machine code: symbols that record expressions, and public numba."""
