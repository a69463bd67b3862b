from streamlit.testing.v1 import AppTest

from pipeline_lab.ui.serving.server import SCRIPT
from pipeline_lab.ui.shared.links import PAGES

app = AppTest.from_file(str(SCRIPT), default_timeout=120).run()
app.switch_page(next(page.path for page in PAGES if page.title == "Toy")).run()
assert app.title[0].value == "How many runs are there?"
assert app.metric[0].value.isdecimal()
