"""The timeline of a run at any size: an index on disk, made once, from which any view of it is cut in milliseconds.

``build`` writes the index in the process that analyzes; ``index`` maps it, ``view`` cuts what a screen can show out of
it, ``look`` finds single events and says what went on in a stretch of time. Only ``build`` reads traces.
"""
