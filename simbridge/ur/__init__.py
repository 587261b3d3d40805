"""Read what is on the wire of a UR controller, as a client that only reads.

RTDE, primary interface, dashboard.
"""
