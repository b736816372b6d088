"""One module per toolchain: from a program to its measured targets."""
