"""What the models learn from: program generators, labels, the store, splits."""
