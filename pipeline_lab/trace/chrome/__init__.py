"""The Chrome trace format: ``<host>.trace.json`` and ``.json.gz``."""
