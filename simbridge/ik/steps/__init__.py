"""One iteration of each method of inverse kinematics that works on the Jacobian: what the joints move, dq, for an
error.

Every method is a file with a compiled `step(jacobian, error, rows, q, ..., work, dq)`:

- `jacobian` (n, 6): a row a joint, a column a component of the task; SI units;
- `error` (6,): what the task still lacks, in the order of the columns, m and rad;
- `rows`: how many components the task uses, m <= 6, the used ones first. All six, the position alone (3) and x and y
  of a planar arm (2) are the leading columns as they come; another choice is packed to the front by the caller,
  translation before rotation;
- `q` (n,): joint positions; only the methods that prefer a posture look at them;
- the method's own parameters, which each file describes;
- `work`: scratch arrays from `work_for(n)`, with nothing to keep between calls;
- `dq` (n,): the outcome.

There are 1 to 12 joints. Finite input gives finite output, singular or not. The largest motion of an iteration,
except where it is the method's own idea, is the caller's to clamp.
"""
