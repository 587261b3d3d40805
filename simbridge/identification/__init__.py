"""What a recording shows of an arm: tuning, delays, kinematics, friction and payload."""
