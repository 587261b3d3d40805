"""Live motion, one control period at a time: inputs, what holds between them, limits on the arm, causes.

Pure: the clock is an argument, and the same inputs at the same instants give the same setpoints to the bit.
"""
