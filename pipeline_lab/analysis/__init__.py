"""From traces and run folders to typed results, one room per question.

From the ground up: ``activity``, ``idle``, ``steps``, ``tf_data``, ``input`` / ``sampling`` / ``machine``, ``results``,
``verdict``, ``diagnosis``, ``timeline`` / ``xprof``. Each analysis declares itself in its module (see ``declaration``). No
TensorFlow and no pandas here; tables are Arrow tables with the columns that each module writes down.
"""
