"""Reports worth sending: one run or several, as HTML, Markdown, JSON, CSV and Parquet.

The app, the command line and Python call the same functions and get the same bytes: nothing here looks at the clock,
at the place where it runs or at the terminal.
"""
