"""Sizes of the PolyBench kernels.

Six sizes each, about equally spaced in the logarithm of executed instructions, from some 2,000 to some 50 million, so
that a model sees every order of magnitude. "odd" has prime dimensions: no vector width or tile size divides them.
"""

from __future__ import annotations

_TABLE = """\
kernel         | dimensions     | mini      | small          | odd            | medium         | large               | extralarge
correlation    | M N            | 9 10      | 20 24          | 43 47          | 80 90          | 160 180             | 300 320
covariance     | M N            | 10 12     | 22 26          | 47 53          | 90 100         | 180 200             | 330 360
gemm           | NI NJ NK       | 8 9 10    | 18 20 22       | 41 43 47       | 80 90 100      | 160 180 200         | 330 340 360
gemver         | N              | 14        | 40             | 113            | 320            | 900                 | 1800
gesummv        | N              | 18        | 52             | 139            | 400            | 1000                | 2000
symm           | M N            | 8 10      | 16 20          | 31 37          | 64 80          | 120 150             | 240 270
syr2k          | M N            | 8 10      | 16 20          | 31 37          | 64 80          | 120 150             | 240 270
syrk           | M N            | 9 11      | 18 22          | 37 41          | 72 84          | 140 170             | 270 300
trmm           | M N            | 10 12     | 20 24          | 41 47          | 80 96          | 160 180             | 300 320
2mm            | NI NJ NK NL    | 6 7 8 9   | 14 15 16 18    | 29 31 37 41    | 56 60 64 70    | 110 120 130 140     | 210 220 230 240
3mm            | NI NJ NK NL NM | 5 6 7 8 9 | 12 13 14 15 16 | 23 29 31 37 41 | 48 52 56 60 64 | 100 105 110 120 130 | 190 200 210 220 230
atax           | M N            | 18 22     | 50 60          | 139 149        | 400 420        | 1100 1200           | 2400 2500
bicg           | M N            | 18 22     | 50 60          | 139 149        | 400 420        | 1100 1200           | 2400 2500
doitgen        | NQ NR NP       | 4 5 6     | 8 9 10         | 13 11 17       | 24 20 30       | 40 36 48            | 64 60 80
mvt            | N              | 18        | 52             | 139            | 400            | 1000                | 2000
cholesky       | N              | 12        | 26             | 53             | 110            | 220                 | 400
durbin         | N              | 20        | 56             | 157            | 420            | 1200                | 3000
gramschmidt    | M N            | 8 7       | 18 16          | 37 31          | 72 64          | 140 130             | 260 240
lu             | N              | 10        | 20             | 41             | 84             | 160                 | 310
ludcmp         | N              | 10        | 20             | 41             | 84             | 160                 | 310
trisolv        | N              | 28        | 80             | 211            | 600            | 1700                | 3600
deriche        | W H            | 6 8       | 16 20          | 43 53          | 120 150        | 360 400             | 900 1000
floyd-warshall | N              | 8         | 16             | 31             | 64             | 130                 | 240
nussinov       | N              | 12        | 26             | 59             | 120            | 250                 | 480
adi            | TSTEPS N       | 1 9       | 3 14           | 7 29           | 12 60          | 24 120              | 40 240
fdtd-2d        | TSTEPS NX NY   | 2 8 10    | 5 16 20        | 11 31 37       | 20 64 80       | 40 130 160          | 70 260 320
heat-3d        | TSTEPS N       | 1 6       | 2 10           | 5 17           | 10 26          | 20 44               | 40 70
jacobi-1d      | TSTEPS N       | 5 40      | 12 120         | 31 401         | 80 1000        | 240 3000            | 600 8000
jacobi-2d      | TSTEPS N       | 2 10      | 6 20           | 13 41          | 24 90          | 50 180              | 100 320
seidel-2d      | TSTEPS N       | 1 12      | 3 20           | 7 37           | 14 72          | 28 140              | 56 240
"""

_HEADER, *_ROWS = ([cell.strip() for cell in line.split("|")] for line in _TABLE.splitlines())

DIMENSIONS: dict[str, tuple[str, ...]] = {kernel: tuple(names.split()) for kernel, names, *_ in _ROWS}
"""Names of the dimensions of each kernel, as in its template."""

SIZES: dict[str, dict[str, tuple[int, ...]]] = {
    kernel: {
        size_name: tuple(int(size) for size in cell.split()) for size_name, cell in zip(_HEADER[2:], cells, strict=True)
    }
    for kernel, _, *cells in _ROWS
}
"""Dimensions per kernel and size name, in the order of DIMENSIONS."""

ELEMENT_TYPES: dict[str, tuple[str, ...]] = {
    kernel: ("i32", "i64") if kernel in ("floyd-warshall", "nussinov") else ("f32", "f64") for kernel in DIMENSIONS
}
"""Element types per kernel; the two integer kernels of PolyBench stay integer."""
