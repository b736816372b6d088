"""The report templates, kept as files."""
