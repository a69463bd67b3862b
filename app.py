"""The Streamlit app: ``streamlit run app.py``.

Streamlit looks for the assignment below in this file's text, so it stays a literal; everything else is imported.
"""

import streamlit as st

from pipeline_lab.ui.serving.routes import ROUTES
from pipeline_lab.ui.serving.server import MIDDLEWARE, SCRIPT, lifespan, show_error

app = st.App(SCRIPT, routes=ROUTES, middleware=MIDDLEWARE, lifespan=lifespan, on_script_error=show_error)
