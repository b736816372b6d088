"""Program generators, by name."""
