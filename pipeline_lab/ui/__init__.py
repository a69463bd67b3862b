"""The Streamlit app: the only room that imports streamlit. Pages arrange what other rooms computed and drew."""
