"""From traces and run folders to typed results. Every analysis is a fold: ``analyse`` a part, ``merge`` the parts.

No TensorFlow and no pandas here; tables are Arrow tables with the columns that each module writes down.
"""
