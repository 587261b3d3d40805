"""Small linear algebra for compiled loops: poses, linear solves, a singular value decomposition, Jacobian products.

Sizes are up to twelve (the rank-revealing solve: any). The functions work in place on the leading part of the arrays
they are given. Finite input whose squares neither overflow nor underflow gives finite output, whatever its rank.
"""

from __future__ import annotations

import math

from simbridge.robot.pose import Array, Counts

EPSILON = 2.0**-52
MAX_SWEEPS = 30
ORTHOGONAL = 1e-15  # cosine between two singular vectors that counts as a right angle
NEGLIGIBLE = 1e-60  # squared length that counts as zero, where the largest entry is about one


def aim(pose: Array, target: Array) -> None:
    """A pose [x y z qx qy qz qw] as position (3) and rotation matrix (9, row by row)."""
    x, y, z, w = pose[3], pose[4], pose[5], pose[6]
    target[0], target[1], target[2] = pose[0], pose[1], pose[2]
    target[3], target[4], target[5] = (
        1.0 - 2.0 * (y * y + z * z),
        2.0 * (x * y - w * z),
        2.0 * (x * z + w * y),
    )
    target[6], target[7], target[8] = (
        2.0 * (x * y + w * z),
        1.0 - 2.0 * (x * x + z * z),
        2.0 * (y * z - w * x),
    )
    target[9], target[10], target[11] = (
        2.0 * (x * z - w * y),
        2.0 * (y * z + w * x),
        1.0 - 2.0 * (x * x + y * y),
    )


def copy(values: Array, destination: Array) -> None:
    """Copy numbers (an assignment of slices takes longer to compile)."""
    for i in range(values.shape[0]):
        destination[i] = values[i]


def norm(e: Array, first: int) -> float:
    """The length of three components of a vector."""
    return math.sqrt(
        e[first] * e[first] + e[first + 1] * e[first + 1] + e[first + 2] * e[first + 2]
    )


def largest(vector: Array) -> float:
    """The largest magnitude in a vector."""
    found = 0.0
    for i in range(vector.shape[0]):
        found = max(found, abs(vector[i]))
    return found


def solve_positive_definite(a: Array, b: Array, n: int) -> None:
    """Solve a x = b in place of b (n,), by L D L^T in place of the lower triangle of a (n, n), which is symmetric and
    positive semidefinite; the upper one is not read. Where a is singular to rounding the dependent unknowns are zero,
    which still solves the system if b is in the range of a."""
    for j in range(n):
        diagonal = a[j, j]
        d = diagonal
        for k in range(j):
            # So far a[j, k] is l d, and a[k, k] is 1 / d.
            scaled = a[j, k]
            l = scaled * a[k, k]  # noqa: E741
            d -= scaled * l
            a[j, k] = l
        inverse = 1.0 / d if d > n * EPSILON * diagonal else 0.0
        a[j, j] = inverse
        for i in range(j + 1, n):
            s = a[i, j]
            for k in range(j):
                s -= a[i, k] * a[j, k]
            a[i, j] = s
    for i in range(1, n):
        s = b[i]
        for k in range(i):
            s -= a[i, k] * b[k]
        b[i] = s
    for i in range(n):
        b[i] *= a[i, i]
    for i in range(n - 2, -1, -1):
        s = b[i]
        for k in range(i + 1, n):
            s -= a[k, i] * b[k]
        b[i] = s


def solve_rank_revealing(a: Array, sides: Array, n: int, order: Counts) -> int:
    """Solve a x = b for any a (n, n) and each b of `sides` (k, n), by Gaussian elimination with complete pivoting, in
    place; order (n,) is scratch. Where a is singular to rounding the free unknowns are zero and the equations without a
    pivot are left out, which still solves the system if b is in the range of a.

    Returns:
        The numerical rank: the number of pivots above n roundings of the largest.
    """
    count = sides.shape[0]
    for i in range(n):
        order[i] = i
    first = 0.0
    rank = n
    for step in range(n):
        largest, row, column = 0.0, step, step
        for i in range(step, n):
            for j in range(step, n):
                if abs(a[i, j]) > largest:
                    largest, row, column = abs(a[i, j]), i, j
        if step == 0:
            first = largest
        if largest <= n * EPSILON * first:
            rank = step
            break
        if row != step:
            for k in range(count):
                sides[k, row], sides[k, step] = sides[k, step], sides[k, row]
            for j in range(step, n):
                a[row, j], a[step, j] = a[step, j], a[row, j]
        if column != step:
            order[column], order[step] = order[step], order[column]
            for i in range(n):
                a[i, column], a[i, step] = a[i, step], a[i, column]
        inverse = 1.0 / a[step, step]
        for i in range(step + 1, n):
            factor = a[i, step] * inverse
            for j in range(step + 1, n):
                a[i, j] -= factor * a[step, j]
            for k in range(count):
                sides[k, i] -= factor * sides[k, step]
    for k in range(count):
        for i in range(rank - 1, -1, -1):
            s = sides[k, i]
            for j in range(i + 1, rank):
                s -= a[i, j] * sides[k, j]
            sides[k, i] = s / a[i, i]
        for i in range(rank, n):
            sides[k, i] = 0.0
    # Back to the order of the unknowns, cycle by cycle.
    for i in range(n):
        while order[i] != i:
            other = order[i]
            for k in range(count):
                sides[k, i], sides[k, other] = sides[k, other], sides[k, i]
            order[i], order[other] = order[other], other
    return rank


def _orthogonalise(vectors: Array, turned: Array, count: int, length: int) -> None:
    """Rotate `count` row vectors until they are orthogonal and sorted by falling length; `turned` is rotated with them.

    Hestenes' one-sided Jacobi method, pairs in row order, the longer vector of a pair first (de Rijk 1989).
    """
    for _ in range(MAX_SWEEPS):
        converged = True
        for i in range(count - 1):
            for j in range(i + 1, count):
                a, b, c = 0.0, 0.0, 0.0
                for k in range(length):
                    x, y = vectors[i, k], vectors[j, k]
                    a += x * x
                    b += y * y
                    c += x * y
                skewed = c * c > ORTHOGONAL * ORTHOGONAL * a * b and min(a, b) > NEGLIGIBLE
                if a >= b and not skewed:
                    continue
                converged = False
                cosine, sine = 1.0, 0.0
                if skewed:
                    zeta = 0.5 * (b - a) / c
                    tangent = math.copysign(1.0, zeta) / (abs(zeta) + math.sqrt(1.0 + zeta * zeta))
                    cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
                    sine = cosine * tangent
                if a >= b:
                    ix, iy, jx, jy = cosine, -sine, sine, cosine
                else:
                    ix, iy, jx, jy = sine, cosine, cosine, -sine
                for k in range(length):
                    x, y = vectors[i, k], vectors[j, k]
                    vectors[i, k], vectors[j, k] = ix * x + iy * y, jx * x + jy * y
                for k in range(count):
                    x, y = turned[i, k], turned[j, k]
                    turned[i, k], turned[j, k] = ix * x + iy * y, jx * x + jy * y
        if converged:
            return


def decompose(a: Array, p: int, q: int, left: Array, singular: Array, right: Array) -> int:
    """The thin singular value decomposition of a[:p, :q]: the sum over i < k of singular[i] left[i] right[i]^T.

    The results are the singular vectors, one per row of `left` (k, p) and `right` (k, q), and the singular values (k,),
    falling, within 1e-14 of the largest. Of the longer side (`right` if p <= q) the vectors of a singular value of zero
    are zero, not a basis of what is left.

    Returns:
        k = min(p, q).
    """
    count = min(p, q)
    largest = 0.0
    for i in range(p):
        for j in range(q):
            largest = max(largest, abs(a[i, j]))
    # Scaling by a power of two is exact, and keeps the squares within range.
    exponent = max(-1000, math.frexp(largest)[1])
    down, up = math.ldexp(1.0, -exponent), math.ldexp(1.0, exponent)
    if p <= q:
        vectors, turned, length = right, left, q
        for i in range(p):
            for j in range(q):
                vectors[i, j] = a[i, j] * down
    else:
        vectors, turned, length = left, right, p
        for i in range(p):
            for j in range(q):
                vectors[j, i] = a[i, j] * down
    for i in range(count):
        for j in range(count):
            turned[i, j] = 1.0 if i == j else 0.0
    _orthogonalise(vectors, turned, count, length)
    for i in range(count):
        square = 0.0
        for k in range(length):
            square += vectors[i, k] * vectors[i, k]
        norm = math.sqrt(square) if square > NEGLIGIBLE else 0.0
        inverse = 1.0 / norm if norm > 0.0 else 0.0
        singular[i] = up * norm
        for k in range(length):
            vectors[i, k] *= inverse
    return count


def to_task(jacobian: Array, dq: Array, n: int, rows: int, out: Array) -> None:
    """J dq (rows,), over the first `rows` components of the task: the motion of the tool."""
    for k in range(rows):
        out[k] = 0.0
    for j in range(n):
        for k in range(rows):
            out[k] += jacobian[j, k] * dq[j]


def to_joints(jacobian: Array, force: Array, n: int, rows: int, out: Array) -> None:
    """J^T force (n,): the joint torques of a force at the tool."""
    for j in range(n):
        s = 0.0
        for k in range(rows):
            s += jacobian[j, k] * force[k]
        out[j] = s


def task_gram(jacobian: Array, n: int, rows: int, out: Array) -> None:
    """The lower triangle of J J^T (rows, rows)."""
    for a in range(rows):
        for b in range(a + 1):
            s = 0.0
            for j in range(n):
                s += jacobian[j, a] * jacobian[j, b]
            out[a, b] = s


def joint_gram(jacobian: Array, n: int, rows: int, out: Array) -> None:
    """The lower triangle of J^T J (n, n)."""
    for i in range(n):
        for j in range(i + 1):
            s = 0.0
            for k in range(rows):
                s += jacobian[i, k] * jacobian[j, k]
            out[i, j] = s
