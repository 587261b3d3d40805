"""Identifies an arm from a recording: tuning, delays, kinematics, friction and payload."""
