"""The PolyBench kernels in plain NumPy, and operands on which they are well-conditioned.

`REFERENCES[kernel]` takes the arrays of the kernel's arguments in order and updates them in place, as the kernel does.
Sums run in NumPy's order, so results agree within rounding only. An argument's shape gives the sizes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Array = np.ndarray

ALPHA = 1.5
BETA = 1.2


def gemm(A: Array, B: Array, C: Array) -> None:
    C[:] = ALPHA * A @ B + BETA * C


def gemver(A: Array, u1: Array, v1: Array, u2: Array, v2: Array, w: Array, x: Array, y: Array, z: Array) -> None:
    A += np.outer(u1, v1) + np.outer(u2, v2)
    x += BETA * A.T @ y + z
    w += ALPHA * A @ x


def gesummv(A: Array, B: Array, tmp: Array, x: Array, y: Array) -> None:
    tmp[:] = A @ x
    y[:] = ALPHA * tmp + BETA * B @ x


def symm(A: Array, B: Array, C: Array) -> None:
    symmetric = np.tril(A) + np.tril(A, -1).T
    C[:] = ALPHA * symmetric @ B + BETA * C


def syr2k(A: Array, B: Array, C: Array) -> None:
    lower = np.tril_indices_from(C)
    C[lower] = (ALPHA * (A @ B.T + B @ A.T) + BETA * C)[lower]


def syrk(A: Array, C: Array) -> None:
    lower = np.tril_indices_from(C)
    C[lower] = (ALPHA * A @ A.T + BETA * C)[lower]


def trmm(A: Array, B: Array) -> None:
    unit_lower = np.tril(A, -1) + np.eye(len(A), dtype=A.dtype)
    B[:] = ALPHA * unit_lower.T @ B


def two_mm(tmp: Array, A: Array, B: Array, C: Array, D: Array) -> None:
    tmp[:] = ALPHA * A @ B
    D[:] = tmp @ C + BETA * D


def three_mm(E: Array, A: Array, B: Array, F: Array, C: Array, D: Array, G: Array) -> None:
    E[:] = A @ B
    F[:] = C @ D
    G[:] = E @ F


def atax(A: Array, x: Array, y: Array, tmp: Array) -> None:
    tmp[:] = A @ x
    y[:] = A.T @ tmp


def bicg(A: Array, s: Array, q: Array, p: Array, r: Array) -> None:
    s[:] = A.T @ r
    q[:] = A @ p


def mvt(x1: Array, x2: Array, y1: Array, y2: Array, A: Array) -> None:
    x1 += A @ y1
    x2 += A.T @ y2


def doitgen(A: Array, C4: Array, total: Array) -> None:
    A[:] = A @ C4
    total[:] = A[-1, -1]


def cholesky(A: Array) -> None:
    factor = np.linalg.cholesky(A)
    lower = np.tril_indices_from(A)
    A[lower] = factor[lower]


def lu(A: Array) -> None:
    for k in range(len(A)):
        A[k + 1 :, k] /= A[k, k]
        A[k + 1 :, k + 1 :] -= np.outer(A[k + 1 :, k], A[k, k + 1 :])


def ludcmp(A: Array, b: Array, x: Array, y: Array) -> None:
    x[:] = np.linalg.solve(A, b)
    y[:] = np.linalg.solve(_unit_lower(A), b)
    lu(A)


def _unit_lower(A: Array) -> Array:
    """L of A = L U."""
    factors = A.copy()
    lu(factors)
    return np.tril(factors, -1) + np.eye(len(A), dtype=A.dtype)


def trisolv(L: Array, x: Array, b: Array) -> None:
    x[:] = np.linalg.solve(np.tril(L), b)


def durbin(r: Array, y: Array) -> None:
    """The Yule-Walker equations T y = -r, with T the symmetric Toeplitz matrix of (1, r[0], ..., r[n-2])."""
    first_row = np.concatenate([[1], r[:-1]])
    lags = np.abs(np.subtract.outer(np.arange(len(r)), np.arange(len(r))))
    y[:] = np.linalg.solve(first_row[lags], -r)


def gramschmidt(A: Array, R: Array, Q: Array) -> None:
    for k in range(A.shape[1]):
        R[k, k] = np.sqrt(A[:, k] @ A[:, k])
        Q[:, k] = A[:, k] / R[k, k]
        R[k, k + 1 :] = Q[:, k] @ A[:, k + 1 :]
        A[:, k + 1 :] -= np.outer(Q[:, k], R[k, k + 1 :])


def correlation(data: Array, corr: Array, mean: Array, stddev: Array) -> None:
    mean[:] = data.mean(axis=0)
    stddev[:] = data.std(axis=0)
    stddev[stddev <= 0.1] = 1
    data[:] = (data - mean) / (np.sqrt(len(data)) * stddev)
    corr[:] = data.T @ data
    np.fill_diagonal(corr, 1)


def covariance(data: Array, cov: Array, mean: Array) -> None:
    mean[:] = data.mean(axis=0)
    data -= mean
    cov[:] = data.T @ data / (len(data) - 1)


def deriche(image: Array, out: Array, y1: Array, y2: Array) -> None:
    alpha = 0.25
    decay = np.exp(-alpha)
    k = (1 - decay) ** 2 / (1 + 2 * alpha * decay - np.exp(2 * alpha))
    causal = (k, k * decay * (alpha - 1))
    anticausal = (k * decay * (alpha + 1), -k * np.exp(-2 * alpha))
    feedback = (2.0**-alpha, -np.exp(-2 * alpha))

    def smooth(source: Array, forward: Array, backward: Array) -> None:
        """Along axis 1."""
        x1, f1, f2 = (np.zeros(len(source), source.dtype) for _ in range(3))
        for j in range(source.shape[1]):
            forward[:, j] = causal[0] * source[:, j] + causal[1] * x1 + feedback[0] * f1 + feedback[1] * f2
            x1, f1, f2 = source[:, j], forward[:, j], f1
        x1, x2, b1, b2 = (np.zeros(len(source), source.dtype) for _ in range(4))
        for j in reversed(range(source.shape[1])):
            backward[:, j] = anticausal[0] * x1 + anticausal[1] * x2 + feedback[0] * b1 + feedback[1] * b2
            x1, x2, b1, b2 = source[:, j], x1, backward[:, j], b1

    smooth(image, y1, y2)
    out[:] = y1 + y2
    smooth(out.T, y1.T, y2.T)
    out[:] = y1 + y2


def floyd_warshall(path: Array) -> None:
    for k in range(len(path)):
        np.minimum(path, path[:, k, None] + path[k], out=path)


def nussinov(sequence: Array, table: Array) -> None:
    n = len(sequence)
    for i in reversed(range(n)):
        for j in range(i + 1, n):
            pairs = i < j - 1 and sequence[i] + sequence[j] == 3
            choices = [table[i, j], table[i, j - 1], table[i + 1, j], table[i + 1, j - 1] + pairs]
            table[i, j] = max(choices + [table[i, k] + table[k + 1, j] for k in range(i + 1, j)])


def adi(u: Array, v: Array, p: Array, q: Array, steps: int) -> None:
    n = len(u)
    mul1, mul2 = 2 * n**2 / steps, n**2 / steps
    a, b, d, e = -mul1 / 2, 1 + mul1, -mul2 / 2, 1 + mul2
    inner = slice(1, -1)
    for _ in range(steps):
        _implicit(v.T, p, q, a, b, -d * u[:, :-2].T + (1 + 2 * d) * u[:, inner].T - d * u[:, 2:].T)
        _implicit(u, p, q, d, e, -a * v[:-2] + (1 + 2 * a) * v[inner] - a * v[2:])


def _implicit(field: Array, p: Array, q: Array, off: float, diagonal: float, right: Array) -> None:
    """Solve the tridiagonal system (off, diagonal, off) along axis 1 in every inner row; 1 at both ends."""
    inner, last = slice(1, -1), field.shape[1] - 1
    field[inner, 0], p[inner, 0], q[inner, 0] = 1, 0, 1
    for j in range(1, last):
        pivot = off * p[inner, j - 1] + diagonal
        p[inner, j] = -off / pivot
        q[inner, j] = (right[:, j] - off * q[inner, j - 1]) / pivot
    field[inner, last] = 1
    for j in reversed(range(1, last)):
        field[inner, j] = p[inner, j] * field[inner, j + 1] + q[inner, j]


def fdtd_2d(ex: Array, ey: Array, hz: Array, fict: Array) -> None:
    for source in fict:
        ey[0] = source
        ey[1:] -= 0.5 * (hz[1:] - hz[:-1])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


def heat_3d(A: Array, B: Array, steps: int) -> None:
    for source, target in [(A, B), (B, A)] * steps:
        here = source[1:-1, 1:-1, 1:-1]
        bends = (
            source[2:, 1:-1, 1:-1]
            + source[:-2, 1:-1, 1:-1]
            + source[1:-1, 2:, 1:-1]
            + source[1:-1, :-2, 1:-1]
            + source[1:-1, 1:-1, 2:]
            + source[1:-1, 1:-1, :-2]
            - 6 * here
        )
        target[1:-1, 1:-1, 1:-1] = here + 0.125 * bends


def jacobi_1d(A: Array, B: Array, steps: int) -> None:
    for source, target in [(A, B), (B, A)] * steps:
        target[1:-1] = 0.33333 * (source[:-2] + source[1:-1] + source[2:])


def jacobi_2d(A: Array, B: Array, steps: int) -> None:
    for source, target in [(A, B), (B, A)] * steps:
        target[1:-1, 1:-1] = 0.2 * (
            source[1:-1, 1:-1] + source[1:-1, :-2] + source[1:-1, 2:] + source[2:, 1:-1] + source[:-2, 1:-1]
        )


def seidel_2d(A: Array, steps: int) -> None:
    for _ in range(steps):
        for i in range(1, len(A) - 1):
            for j in range(1, len(A) - 1):
                A[i, j] = A[i - 1 : i + 2, j - 1 : j + 2].mean()


REFERENCES: dict[str, Callable[..., None]] = {
    "2mm": two_mm,
    "3mm": three_mm,
    "adi": adi,
    "atax": atax,
    "bicg": bicg,
    "cholesky": cholesky,
    "correlation": correlation,
    "covariance": covariance,
    "deriche": deriche,
    "doitgen": doitgen,
    "durbin": durbin,
    "fdtd-2d": fdtd_2d,
    "floyd-warshall": floyd_warshall,
    "gemm": gemm,
    "gemver": gemver,
    "gesummv": gesummv,
    "gramschmidt": gramschmidt,
    "heat-3d": heat_3d,
    "jacobi-1d": jacobi_1d,
    "jacobi-2d": jacobi_2d,
    "lu": lu,
    "ludcmp": ludcmp,
    "mvt": mvt,
    "nussinov": nussinov,
    "seidel-2d": seidel_2d,
    "symm": symm,
    "syr2k": syr2k,
    "syrk": syrk,
    "trisolv": trisolv,
    "trmm": trmm,
}

TIME_STEPPED = frozenset({"adi", "heat-3d", "jacobi-1d", "jacobi-2d", "seidel-2d"})
"""Kernels whose reference takes the number of steps, which no argument's shape tells, as `steps`."""


def operands(kernel: str, shapes: list[tuple[int, ...]], dtype: np.dtype, rng: np.random.Generator) -> list[Array]:
    """Random arguments, scratch and output arrays included, on which the kernel loses few digits."""
    if kernel == "nussinov":
        return [rng.integers(0, 4, shapes[0]).astype(dtype), rng.integers(-2, 1, shapes[1]).astype(dtype)]
    if kernel == "floyd-warshall":
        return [rng.integers(1, 1000, shapes[0]).astype(dtype)]
    arrays = [rng.uniform(-1, 1, shape) for shape in shapes]
    if kernel == "cholesky":
        arrays[0] = arrays[0] @ arrays[0].T + len(arrays[0]) * np.eye(len(arrays[0]))
    elif kernel in ("lu", "ludcmp", "trisolv"):
        arrays[0] += 2 * np.sqrt(len(arrays[0])) * np.eye(len(arrays[0]))
    elif kernel == "durbin":
        arrays[0] = 0.5 ** np.arange(1, len(arrays[0]) + 1) * rng.uniform(0.5, 1, len(arrays[0]))
    elif kernel == "correlation":
        arrays[0][:, 0] *= 0.01  # a standard deviation below 0.1 counts as 1
    return [array.astype(dtype) for array in arrays]
