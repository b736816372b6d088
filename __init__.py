"""irgauge predicts what MLIR will cost on real hardware, from the IR alone, and says why."""
