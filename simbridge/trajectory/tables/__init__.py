"""Tables of poses: text, motion capture and arrays, by dialects, by names, or as `--columns` says.

A file is one of a few documented dialects (`text_dialects`, `motive`, `vicon`, `array_table`), or
the names of its columns are in one table (`aliases`), or `--columns` says what they are (`choice`).
Everything else is refused, with the nearest dialect and a ready `--columns`. A table that names no
poses but the joints of the arm is one of joint positions (`named_joints`).
"""
