"""Sizes of the PolyBench kernels.

Six sizes each, about equally spaced in the logarithm of executed instructions, from some 2,000 to some 50 million, so
that a model sees every order of magnitude. "odd" has prime dimensions: no vector width or tile size divides them.
"""

from __future__ import annotations

_TABLE = """\
kernel        |dimensions    |mini     |small         |odd           |medium        |large          |extralarge
correlation   |M N           |8 9      |18 22         |31 37         |68 76         |136 152        |300 320
covariance    |M N           |8 10     |18 20         |31 37         |68 76         |136 152        |270 300
gemm          |NI NJ NK      |7 8 9    |12 14 16      |41 43 47      |80 90 100     |192 224 248    |410 430 450
gemver        |N             |11       |40            |113           |320           |900            |2190
gesummv       |N             |21       |40            |107           |300           |832            |2000
symm          |M N           |7 8      |12 16         |29 31         |52 64         |104 128        |210 240
syr2k         |M N           |6 7      |12 16         |31 37         |64 80         |120 150        |240 270
syrk          |M N           |7 8      |14 18         |37 41         |72 84         |140 170        |310 340
trmm          |M N           |7 9      |14 18         |31 37         |64 76         |128 144        |260 280
2mm           |NI NJ NK NL   |5 6 7 8  |14 15 16 18   |23 29 31 37   |40 44 48 52   |80 88 96 104   |160 170 180 190
3mm           |NI NJ NK NL NM|4 5 6 7 8|10 12 14 16 18|17 23 29 31 37|32 36 40 44 48|72 80 88 96 104|140 150 160 170 180
atax          |M N           |14 17    |50 60         |139 149       |400 420       |1100 1200      |3030 3150
bicg          |M N           |14 17    |36 44         |103 109       |296 308       |792 872        |2400 2500
doitgen       |NQ NR NP      |4 5 6    |6 8 10        |17 13 23      |28 24 32      |32 40 48       |50 60 70
mvt           |N             |24       |38            |107           |304           |840            |2000
cholesky      |N             |10       |22            |47            |100           |200            |400
durbin        |N             |16       |56            |157           |420           |1200           |3000
gramschmidt   |M N           |8 7      |18 16         |31 29         |64 56         |120 112        |260 240
lu            |N             |9        |18            |41            |84            |160            |310
ludcmp        |N             |9        |18            |41            |84            |160            |310
trisolv       |N             |28       |80            |211           |600           |1700           |3600
deriche       |W H           |6 8      |26 32         |43 53         |120 150       |360 400        |900 1000
floyd-warshall|N             |7        |14            |29            |52            |96             |200
nussinov      |N             |9        |20            |43            |88            |176            |350
adi           |TSTEPS N      |1 9      |3 14          |5 23          |10 48         |19 96          |32 200
fdtd-2d       |TSTEPS NX NY  |2 7 9    |4 12 16       |13 37 43      |24 76 96      |48 152 192     |88 320 400
heat-3d       |TSTEPS N      |1 6      |2 8           |3 11          |10 26         |17 40          |32 60
jacobi-1d     |TSTEPS N      |9 76     |26 258        |61 809        |184 2300      |506 6350       |1356 18050
jacobi-2d     |TSTEPS N      |2 10     |5 16          |13 41         |28 108        |56 200         |114 370
seidel-2d     |TSTEPS N      |1 14     |3 20          |7 37          |14 72         |28 140         |56 240
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
