"""What users get, byte for byte: rendered sources, documents, terminal text, reports, help."""
