"""What is on the wire of a UR controller, seen from a client that only reads.

RTDE, primary interface, dashboard.
"""
