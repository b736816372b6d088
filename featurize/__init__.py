"""MLIR text to ops to program to features; depends on nothing else in irgauge."""
