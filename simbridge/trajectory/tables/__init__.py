"""Tables of poses: text, motion capture and arrays, by dialects, by names, or as `--columns` says.

A file is one of a few documented dialects (`text_dialects`, `motive`, `vicon`, `array_table`), or
the names of its columns are in one table (`aliases`), or `--columns` says what they are (`choice`).
Everything else is refused, with the nearest dialect and a ready `--columns`. A table that names no
poses but the joints of the arm is one of joint positions (`named_joints`).

A table passes through these files in this order. What the user asks for is parsed first (`choice`).
A text is cut into lines (`text_table`, `text_lines`). If it is an export of motion capture, its
header says the columns (`motive`, `vicon`, with `rigid_bodies`). Of any other text, what is before
the numbers is read (`text_header`), and decides: a JointState with its joints in the rows
(`joint_state_text`), a header or a comment with names, `--columns`, or else the number of fields
(`text_dialects`). npz and Parquet become columns with names (`array_files`, `array_table`). Names
(`header`) are those of joints or of poses, which `named_joints` decides: each name is taken apart
(`column_names`); those of the arm's joints are in `joint_aliases` (`joint_columns`), those of poses
in `aliases` (`column_roles`, `named_columns`). The result is what each column is (`Columns` in
`table`, with `roles` and `units`), by which the numbers of a text are read (`text_rows`). Names
that leave it open are refused with flags (`pose_refusals`, `joint_advice`): `pose_candidates` and
`time_candidates` find what the columns may be, and `pose_advice` writes a flag for each reading.
Outside of this folder, `recording` turns the table into a trajectory, with its times
(`table_times`, `wall_clock`) and rotations (`table_rotations`); a unit that no name states is that
of a comment (`unit_comments`), or follows from the numbers (`unit_rules`).
"""
