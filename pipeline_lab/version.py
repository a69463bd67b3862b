"""The version of Pipeline Lab; the wheel, ``--version``, run records and the app take it from here."""

__version__ = "0.1.0"
