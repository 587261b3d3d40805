"""Small linear algebra for compiled loops: linear solves, singular values, Jacobian products.

Sizes are up to twelve (the rank-revealing solve: any). The functions work in place on the leading
part of the arrays they are given. Finite input whose squares neither overflow nor underflow gives
finite output, whatever its rank.

Assignments of slices would take longer to compile than these loops.
"""

from __future__ import annotations

import math

from simbridge.robot.pose import Array, Counts

EPSILON = 2.0**-52
# Sweeps over all pairs of vectors that are tried at most; some six suffice.
MAX_SWEEPS = 30
# Cosine between two singular vectors that counts as a right angle.
RIGHT_ANGLE = 1e-15
# Squared length that counts as zero, where the largest entry is about one.
NEGLIGIBLE = 1e-60
# The smallest exponent of two by which a matrix is scaled.
MIN_EXPONENT = -1000


def aim(pose: Array, target: Array) -> None:
    """Write a pose as a target: position (3) and rotation matrix (9, row by row).

    Args:
        pose: [x y z qx qy qz qw].
        target: Result (12,).
    """
    x = pose[3]
    y = pose[4]
    z = pose[5]
    w = pose[6]
    target[0] = pose[0]
    target[1] = pose[1]
    target[2] = pose[2]

    # The rotation matrix of a unit quaternion.
    target[3] = 1.0 - 2.0 * (y * y + z * z)
    target[4] = 2.0 * (x * y - w * z)
    target[5] = 2.0 * (x * z + w * y)

    target[6] = 2.0 * (x * y + w * z)
    target[7] = 1.0 - 2.0 * (x * x + z * z)
    target[8] = 2.0 * (y * z - w * x)

    target[9] = 2.0 * (x * z - w * y)
    target[10] = 2.0 * (y * z + w * x)
    target[11] = 1.0 - 2.0 * (x * x + y * y)


def copy(values: Array, destination: Array) -> None:
    """Copy numbers."""
    for i in range(values.shape[0]):
        destination[i] = values[i]


def norm(vector: Array, first: int) -> float:
    """Return the length of three components of a vector, from the first on."""
    x = vector[first]
    y = vector[first + 1]
    z = vector[first + 2]
    return math.sqrt(x * x + y * y + z * z)


def largest(vector: Array) -> float:
    """Return the largest magnitude in a vector."""
    magnitude = 0.0
    for i in range(vector.shape[0]):
        magnitude = max(magnitude, abs(vector[i]))
    return magnitude


def largest_difference(a: Array, b: Array) -> float:
    """Return the largest magnitude in the difference of two vectors."""
    magnitude = 0.0
    for i in range(a.shape[0]):
        magnitude = max(magnitude, abs(a[i] - b[i]))
    return magnitude


def solve_positive_definite(a: Array, b: Array, n: int) -> None:
    """Solve a x = b for a symmetric, positive semidefinite matrix, as L D L^T.

    Where a is singular to rounding the dependent unknowns are zero, which still solves the system
    if b is in the range of a.

    All is one function: apart, factorisation and substitution took a fifth longer.

    Args:
        a: The lower triangle of the matrix (n, n), which becomes L and, on the diagonal, 1/D. The
            upper one is not read.
        b: The right-hand side (n,), which becomes x.
        n: The size.
    """
    # Factorise, column by column. 1/D is zero where a row depends on those before.
    for j in range(n):
        diagonal = a[j, j]
        d = diagonal
        for k in range(j):
            # So far a[j, k] is L D, and a[k, k] is 1/D.
            product = a[j, k]
            factor = product * a[k, k]
            d -= product * factor
            a[j, k] = factor
        a[j, j] = invert_or_zero(d, n * EPSILON * diagonal)

        for i in range(j + 1, n):
            value = a[i, j]
            for k in range(j):
                value -= a[i, k] * a[j, k]
            a[i, j] = value

    # Substitute: L^-1, D^-1, L^-T.
    for i in range(1, n):
        value = b[i]
        for k in range(i):
            value -= a[i, k] * b[k]
        b[i] = value
    for i in range(n):
        b[i] *= a[i, i]
    for i in range(n - 2, -1, -1):
        value = b[i]
        for k in range(i + 1, n):
            value -= a[k, i] * b[k]
        b[i] = value


def invert_or_zero(value: float, rounding: float) -> float:
    """Return 1/value; 0 where the value is no larger than its rounding."""
    return 1.0 / value if value > rounding else 0.0


# complexipy: ignore (functions for its steps take longer, as said below)
def solve_rank_revealing(a: Array, sides: Array, n: int, order: Counts) -> int:
    """Solve a x = b for any matrix, by Gaussian elimination with complete pivoting.

    Where a is singular to rounding the free unknowns are zero and the equations without a pivot are
    left out, which still solves the system if b is in the range of a.

    The elimination is one function: its steps in functions of their own took a tenth longer.

    Args:
        a: The matrix (n, n), which is overwritten.
        sides: Right-hand sides b (k, n), which become solutions x.
        n: The size.
        order: Scratch (n,).

    Returns:
        The numerical rank: the number of pivots above n roundings of the largest.
    """
    count = sides.shape[0]
    # The unknown that stands in each column.
    for i in range(n):
        order[i] = i

    first_pivot = 0.0
    rank = n
    for step in range(n):
        # The pivot: the largest entry that is left.
        pivot = 0.0
        row = step
        column = step
        for i in range(step, n):
            for j in range(step, n):
                if abs(a[i, j]) > pivot:
                    pivot = abs(a[i, j])
                    row = i
                    column = j
        if step == 0:
            first_pivot = pivot
        if pivot <= n * EPSILON * first_pivot:
            rank = step
            break

        # Bring it to the diagonal: swap two equations, then two unknowns.
        if row != step:
            for k in range(count):
                sides[k, row], sides[k, step] = sides[k, step], sides[k, row]
            for j in range(step, n):
                a[row, j], a[step, j] = a[step, j], a[row, j]
        if column != step:
            order[column], order[step] = order[step], order[column]
            for i in range(n):
                a[i, column], a[i, step] = a[i, step], a[i, column]

        # Take a multiple of its equation from those below, so that its unknown vanishes there. The
        # entries that vanish are not written.
        inverse = 1.0 / a[step, step]
        for i in range(step + 1, n):
            factor = a[i, step] * inverse
            for j in range(step + 1, n):
                a[i, j] -= factor * a[step, j]
            for k in range(count):
                sides[k, i] -= factor * sides[k, step]

    substitute_back(a, sides, rank, n)
    restore_order(sides, order, n)
    return rank


def substitute_back(a: Array, sides: Array, rank: int, n: int) -> None:
    """Solve a triangular system from its last equation up; unknowns from the rank on are zero."""
    for k in range(sides.shape[0]):
        for i in range(rank - 1, -1, -1):
            value = sides[k, i]
            for j in range(i + 1, rank):
                value -= a[i, j] * sides[k, j]
            sides[k, i] = value / a[i, i]
        for i in range(rank, n):
            sides[k, i] = 0.0


def restore_order(sides: Array, order: Counts, n: int) -> None:
    """Bring solutions (k, n) back to the order of the unknowns, cycle by cycle."""
    for i in range(n):
        while order[i] != i:
            j = order[i]
            for k in range(sides.shape[0]):
                sides[k, i], sides[k, j] = sides[k, j], sides[k, i]
            order[i], order[j] = order[j], order[i]


def decompose(a: Array, p: int, q: int, left: Array, singular: Array, right: Array) -> int:
    """Decompose a matrix into singular values and vectors.

    a[:p, :q] is the sum over i < k of singular[i] left[i] right[i]^T, k = min(p, q): the thin
    decomposition. Of the longer side (`right` if p <= q) the vectors of a singular value of zero
    are zero, not a basis of the remaining space.

    Args:
        a: The matrix.
        p: The number of its rows.
        q: The number of its columns.
        left: Result (k, p): a singular vector in each row.
        singular: Result (k,): singular values, falling, within 1e-14 of the largest.
        right: Result (k, q): a singular vector in each row.

    Returns:
        k.
    """
    magnitude = 0.0
    for i in range(p):
        for j in range(q):
            magnitude = max(magnitude, abs(a[i, j]))
    # Scaling by a power of two is exact, and keeps the squares within range.
    exponent = max(MIN_EXPONENT, math.frexp(magnitude)[1])
    down = math.ldexp(1.0, -exponent)
    up = math.ldexp(1.0, exponent)

    # The longer vectors are made orthogonal, and the shorter ones follow from the identity.
    if p <= q:
        for i in range(p):
            for j in range(q):
                right[i, j] = a[i, j] * down
        orthogonalise(right, left, p, q)
        normalise(right, singular, p, q, up)
        return p

    for i in range(p):
        for j in range(q):
            left[j, i] = a[i, j] * down
    orthogonalise(left, right, q, p)
    normalise(left, singular, q, p, up)
    return q


def orthogonalise(vectors: Array, rotation: Array, count: int, length: int) -> None:
    """Rotate row vectors until they are orthogonal, and sorted by falling length.

    Hestenes' one-sided Jacobi method, pairs in row order, the longer vector of a pair first
    (de Rijk 1989).

    Args:
        vectors: The rows (count, length).
        rotation: Result (count, count): the identity, rotated with them.
        count: The number of vectors.
        length: The number of their components.
    """
    for i in range(count):
        for j in range(count):
            rotation[i, j] = 1.0 if i == j else 0.0

    for _ in range(MAX_SWEEPS):
        if sweep(vectors, rotation, count, length):
            return


def sweep(vectors: Array, rotation: Array, count: int, length: int) -> bool:
    """Rotate and swap each pair of vectors once; return whether all were orthogonal and sorted.

    The products of a pair are formed here: a function of their own would be called for each pair.

    Args:
        vectors: The rows (count, length).
        rotation: A matrix (count, count) whose rows are rotated and swapped with them.
        count: The number of vectors.
        length: The number of their components.
    """
    is_converged = True
    for i in range(count - 1):
        for j in range(i + 1, count):
            # Their squared lengths a and b, and their scalar product c.
            a = 0.0
            b = 0.0
            c = 0.0
            for k in range(length):
                x = vectors[i, k]
                y = vectors[j, k]
                a += x * x
                b += y * y
                c += x * y

            is_skewed = c * c > RIGHT_ANGLE * RIGHT_ANGLE * a * b and min(a, b) > NEGLIGIBLE
            if a >= b and not is_skewed:
                continue
            is_converged = False

            ix, iy, jx, jy = pair_rotation(a, b, c, is_skewed)
            rotate(vectors, i, j, length, ix, iy, jx, jy)
            rotate(rotation, i, j, count, ix, iy, jx, jy)
    return is_converged


def pair_rotation(
    a: float, b: float, c: float, is_skewed: bool
) -> tuple[float, float, float, float]:
    """Return the weights with which `rotate` makes two vectors orthogonal, the longer one first.

    Args:
        a: Squared length of the first vector.
        b: Squared length of the second.
        c: Their scalar product.
        is_skewed: Whether they are not orthogonal yet.
    """
    cosine = 1.0
    sine = 0.0
    if is_skewed:
        cosine, sine = jacobi_rotation(a, b, c)
    if a >= b:
        return cosine, -sine, sine, cosine
    return sine, cosine, cosine, -sine


def jacobi_rotation(a: float, b: float, c: float) -> tuple[float, float]:
    """Return cosine and sine of the smaller rotation that makes two vectors orthogonal.

    Args:
        a: The squared length of the first.
        b: The squared length of the second.
        c: Their scalar product.
    """
    zeta = 0.5 * (b - a) / c
    tangent = math.copysign(1.0, zeta) / (abs(zeta) + math.sqrt(1.0 + zeta * zeta))
    cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
    return cosine, cosine * tangent


def rotate(  # noqa: PLR0913 (compiled: plain arrays and numbers)
    vectors: Array, i: int, j: int, length: int, ix: float, iy: float, jx: float, jy: float
) -> None:
    """Replace rows x = i and y = j by ix x + iy y and jx x + jy y."""
    for k in range(length):
        x = vectors[i, k]
        y = vectors[j, k]
        vectors[i, k] = ix * x + iy * y
        vectors[j, k] = jx * x + jy * y


def normalise(vectors: Array, singular: Array, count: int, length: int, scale: float) -> None:
    """Divide row vectors by their lengths, which times a scale are the singular values."""
    for i in range(count):
        square = 0.0
        for k in range(length):
            square += vectors[i, k] * vectors[i, k]
        size = math.sqrt(square) if square > NEGLIGIBLE else 0.0
        singular[i] = scale * size

        inverse = 1.0 / size if size > 0.0 else 0.0
        for k in range(length):
            vectors[i, k] *= inverse


def to_task(jacobian: Array, dq: Array, n: int, rows: int, out: Array) -> None:
    """Write the motion of the tool J dq (rows,), over the first rows of the task."""
    for k in range(rows):
        out[k] = 0.0
    for j in range(n):
        for k in range(rows):
            out[k] += jacobian[j, k] * dq[j]


def to_joints(jacobian: Array, force: Array, n: int, rows: int, out: Array) -> None:
    """Write the joint torques J^T force (n,) of a force at the tool (rows,)."""
    for j in range(n):
        torque = 0.0
        for k in range(rows):
            torque += jacobian[j, k] * force[k]
        out[j] = torque


def task_gram(jacobian: Array, n: int, rows: int, out: Array) -> None:
    """Write the lower triangle of J J^T (rows, rows)."""
    for a in range(rows):
        for b in range(a + 1):
            product = 0.0
            for j in range(n):
                product += jacobian[j, a] * jacobian[j, b]
            out[a, b] = product


def joint_gram(jacobian: Array, n: int, rows: int, out: Array) -> None:
    """Write the lower triangle of J^T J (n, n)."""
    for i in range(n):
        for j in range(i + 1):
            product = 0.0
            for k in range(rows):
                product += jacobian[i, k] * jacobian[j, k]
            out[i, j] = product
