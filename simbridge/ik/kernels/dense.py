"""Small linear algebra for compiled loops: linear solves, singular values, Jacobian products.

The functions work in place on the leading part of their arrays. Sizes are up to twelve, except for
the rank-revealing solve, which takes any size. Finite input whose squares neither overflow nor
underflow gives finite output, whatever its rank.

Elements are assigned in loops, since slices would take longer to compile.
"""

from __future__ import annotations

import math

from simbridge.robot.pose import Array, Counts

# Relative rounding of a number in double precision.
EPSILON = 2.0**-52
# Largest number of sweeps over all pairs of vectors; about six suffice.
MAX_SWEEPS = 30
# Largest cosine between two singular vectors that counts as a right angle.
RIGHT_ANGLE = 1e-15
# Largest squared length that counts as zero in a matrix whose largest entry is about one.
NEGLIGIBLE = 1e-60
# Smallest exponent of two by which a matrix is scaled.
MIN_EXPONENT = -1000


def write_target(pose: Array, target: Array) -> None:
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
    """Copy the elements of an array to the beginning of another."""
    for i in range(values.shape[0]):
        destination[i] = values[i]


def norm(vector: Array, first: int) -> float:
    """Return the length of three successive components of a vector, the first one at `first`."""
    x = vector[first]
    y = vector[first + 1]
    z = vector[first + 2]
    return math.sqrt(x * x + y * y + z * z)


def largest(vector: Array) -> float:
    """Return the largest magnitude of a vector's components."""
    magnitude = 0.0
    for i in range(vector.shape[0]):
        magnitude = max(magnitude, abs(vector[i]))
    return magnitude


def largest_difference(a: Array, b: Array) -> float:
    """Return the largest magnitude of the components of a - b."""
    magnitude = 0.0
    for i in range(a.shape[0]):
        magnitude = max(magnitude, abs(a[i] - b[i]))
    return magnitude


def solve_positive_definite(a: Array, b: Array, n: int) -> None:
    """Solve a x = b for a symmetric, positive semidefinite matrix, by the factorisation L D L^T.

    If a is singular to rounding, unknowns that are not determined become zero. That still solves
    the system if b is in the range of a.

    Factorisation and substitution are one function, since two took a fifth longer.

    Args:
        a: The lower triangle of the matrix (n, n); it becomes L and, on the diagonal, 1/D. The
            upper triangle is not read.
        b: The right-hand side (n,), which becomes x.
        n: The number of unknowns.
    """
    # Factorise, column by column. 1/D is zero if a row depends on the rows above it.
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

    # Multiply b by L^-1, then by D^-1, then by L^-T.
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
    """Return 1/value, or 0 if the value is no larger than its rounding."""
    return 1.0 / value if value > rounding else 0.0


# complexipy: ignore (functions for its steps take longer, as said below)
def solve_rank_revealing(a: Array, sides: Array, n: int, order: Counts) -> int:
    """Solve a x = b for any matrix, by Gaussian elimination with complete pivoting.

    If a is singular to rounding, unknowns that are not determined become zero, and equations
    without a pivot are left out. That still solves the system if b is in the range of a.

    The elimination is one function, since its steps as functions took a tenth longer.

    Args:
        a: The matrix (n, n), which is overwritten.
        sides: Right-hand sides b (k, n), which become solutions x.
        n: The number of unknowns.
        order: Scratch (n,).

    Returns:
        The numerical rank: the number of pivots larger than n EPSILON times the largest pivot.
    """
    count = sides.shape[0]
    # `order` holds the index of the unknown that belongs to each column.
    for i in range(n):
        order[i] = i

    first_pivot = 0.0
    rank = n
    for step in range(n):
        # Choose the largest remaining entry as the pivot.
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

        # Bring the pivot to the diagonal: swap two equations, then two unknowns.
        if row != step:
            for k in range(count):
                sides[k, row], sides[k, step] = sides[k, step], sides[k, row]
            for j in range(step, n):
                a[row, j], a[step, j] = a[step, j], a[row, j]
        if column != step:
            order[column], order[step] = order[step], order[column]
            for i in range(n):
                a[i, column], a[i, step] = a[i, step], a[i, column]

        # Subtract multiples of the pivot's equation from the equations below, so that its unknown
        # vanishes there. The entries that vanish are not read again, so they are not written.
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
    """Solve a triangular system, from its last equation up.

    Args:
        a: The upper triangle of the matrix (n, n).
        sides: Right-hand sides (k, n), which become solutions.
        rank: Number of equations that are solved; the unknowns beyond it become zero.
        n: The number of unknowns.
    """
    for k in range(sides.shape[0]):
        for i in range(rank - 1, -1, -1):
            value = sides[k, i]
            for j in range(i + 1, rank):
                value -= a[i, j] * sides[k, j]
            sides[k, i] = value / a[i, i]
        for i in range(rank, n):
            sides[k, i] = 0.0


def restore_order(sides: Array, order: Counts, n: int) -> None:
    """Permute solutions (k, n) back to the original order of the unknowns.

    Args:
        sides: Solutions (k, n).
        order: Index of the unknown that each element belongs to (n,); it becomes 0 to n - 1.
        n: The number of unknowns.
    """
    for i in range(n):
        while order[i] != i:
            j = order[i]
            for k in range(sides.shape[0]):
                sides[k, i], sides[k, j] = sides[k, j], sides[k, i]
            order[i], order[j] = order[j], order[i]


def decompose(a: Array, p: int, q: int, left: Array, singular: Array, right: Array) -> int:
    """Decompose a matrix into singular values and vectors (the thin decomposition).

    a[:p, :q] is the sum over i < k of singular[i] left[i] right[i]^T, with k = min(p, q). The
    longer vectors (`right` if p <= q, else `left`) of a singular value of zero are zero vectors,
    not a basis of the remaining space.

    Args:
        a: The matrix.
        p: Number of rows of the matrix.
        q: Number of columns of the matrix.
        left: Result (k, p): a singular vector in each row.
        singular: Result (k,): singular values, largest first, accurate to 1e-14 of the largest.
        right: Result (k, q): a singular vector in each row.

    Returns:
        k, the number of singular values.
    """
    magnitude = 0.0
    for i in range(p):
        for j in range(q):
            magnitude = max(magnitude, abs(a[i, j]))
    # Scaling by a power of two is exact, and keeps the squares within range.
    exponent = max(MIN_EXPONENT, math.frexp(magnitude)[1])
    down = math.ldexp(1.0, -exponent)
    up = math.ldexp(1.0, exponent)

    # The longer vectors are made orthogonal by rotations; the product of these is the shorter ones.
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
    """Rotate row vectors until they are orthogonal, and sorted by decreasing length.

    This is Hestenes' one-sided Jacobi method, with pairs in row order and the longer vector of a
    pair first (de Rijk 1989).

    Args:
        vectors: The row vectors (count, length), which are rotated in place.
        rotation: Result (count, count): the product of all rotations.
        count: Number of vectors.
        length: Number of components of a vector.
    """
    for i in range(count):
        for j in range(count):
            rotation[i, j] = 1.0 if i == j else 0.0

    for _ in range(MAX_SWEEPS):
        if sweep(vectors, rotation, count, length):
            return


def sweep(vectors: Array, rotation: Array, count: int, length: int) -> bool:
    """Make each pair of row vectors orthogonal once, with the longer one first.

    This is one sweep of Jacobi's method, which `orthogonalise` repeats.

    Args:
        vectors: The row vectors (count, length), which are rotated in place.
        rotation: The product of all rotations so far (count, count), which is rotated alike.
        count: Number of vectors.
        length: Number of components of a vector.

    Returns:
        Whether all vectors were orthogonal and sorted before.
    """
    is_converged = True
    for i in range(count - 1):
        for j in range(i + 1, count):
            # Squared lengths a and b of the two vectors, and their scalar product c. The loop
            # stands here because calling a function for each pair would take longer.
            a = 0.0
            b = 0.0
            c = 0.0
            for k in range(length):
                x = vectors[i, k]
                y = vectors[j, k]
                a += x * x
                b += y * y
                c += x * y

            # Leave vectors alone that are orthogonal and sorted. Two vectors are orthogonal if
            # their cosine, c / sqrt(a b), is no larger than RIGHT_ANGLE, or if one of them is zero.
            is_skewed = c * c > RIGHT_ANGLE * RIGHT_ANGLE * a * b and min(a, b) > NEGLIGIBLE
            if a >= b and not is_skewed:
                continue
            is_converged = False

            # Rotate both: the new first vector is ix times the first plus iy times the second, and
            # the new second one has the weights jx and jy.
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
        b: Squared length of the second vector.
        c: Scalar product of the two vectors.
        is_skewed: Whether the vectors are not orthogonal yet.

    Returns:
        The weights ix, iy, jx and jy of `rotate`.
    """
    cosine = 1.0
    sine = 0.0
    if is_skewed:
        cosine, sine = jacobi_rotation(a, b, c)
    if a >= b:
        return cosine, -sine, sine, cosine
    return sine, cosine, cosine, -sine


def jacobi_rotation(a: float, b: float, c: float) -> tuple[float, float]:
    """Return cosine and sine of the smallest rotation that makes two vectors orthogonal.

    Args:
        a: Squared length of the first vector.
        b: Squared length of the second vector.
        c: Scalar product of the two vectors, not zero.
    """
    zeta = 0.5 * (b - a) / c
    tangent = math.copysign(1.0, zeta) / (abs(zeta) + math.sqrt(1.0 + zeta * zeta))
    cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
    return cosine, cosine * tangent


def rotate(  # noqa: PLR0913 (compiled: plain arrays and numbers)
    vectors: Array, i: int, j: int, length: int, ix: float, iy: float, jx: float, jy: float
) -> None:
    """Replace two rows, x with index i and y with index j, by ix x + iy y and jx x + jy y."""
    for k in range(length):
        x = vectors[i, k]
        y = vectors[j, k]
        vectors[i, k] = ix * x + iy * y
        vectors[j, k] = jx * x + jy * y


def normalise(vectors: Array, singular: Array, count: int, length: int, scale: float) -> None:
    """Divide row vectors by their lengths, and write the singular values.

    Args:
        vectors: The row vectors (count, length).
        singular: Result (count,): the lengths times the scale.
        count: Number of vectors.
        length: Number of components of a vector.
        scale: The factor by which the lengths are multiplied.
    """
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
    """Write the tool's motion J dq in the components of the task.

    Args:
        jacobian: The Jacobian, a row per joint (n, 6).
        dq: Motion of the joints (n,).
        n: Number of joints.
        rows: Number of components of the task.
        out: Result (rows,).
    """
    for k in range(rows):
        out[k] = 0.0
    for j in range(n):
        for k in range(rows):
            out[k] += jacobian[j, k] * dq[j]


def to_joints(jacobian: Array, force: Array, n: int, rows: int, out: Array) -> None:
    """Write the joint torques J^T force of a force at the tool.

    Args:
        jacobian: The Jacobian, a row per joint (n, 6).
        force: Force in the components of the task (rows,).
        n: Number of joints.
        rows: Number of components of the task.
        out: Result (n,).
    """
    for j in range(n):
        torque = 0.0
        for k in range(rows):
            torque += jacobian[j, k] * force[k]
        out[j] = torque


def task_gram(jacobian: Array, n: int, rows: int, out: Array) -> None:
    """Write the lower triangle of J J^T (rows, rows), in task space."""
    for a in range(rows):
        for b in range(a + 1):
            product = 0.0
            for j in range(n):
                product += jacobian[j, a] * jacobian[j, b]
            out[a, b] = product


def joint_gram(jacobian: Array, n: int, rows: int, out: Array) -> None:
    """Write the lower triangle of J^T J (n, n), in joint space."""
    for i in range(n):
        for j in range(i + 1):
            product = 0.0
            for k in range(rows):
                product += jacobian[i, k] * jacobian[j, k]
            out[i, j] = product
