"""Live sessions: inputs at any rate, limits, the loop that moves the arm, and their record.

The room spans several layers, from pure motion to the session that a user holds; pyproject.toml
lists which module is in which.
"""
