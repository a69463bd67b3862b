"""The Streamlit app; the only room that imports streamlit."""
