"""From traces and a job's notes to a diagnosis: the fold over all analyses, kept on disk."""
