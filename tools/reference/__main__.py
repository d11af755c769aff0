"""`make reference`: write the pages of docs/reference/."""

import sys

from reference.markdown import Undescribed
from reference.pages import DIRECTORY, pages

try:
    made = pages()
except Undescribed as error:
    sys.exit(f"reference: {error}")
DIRECTORY.mkdir(exist_ok=True)
for name, text in made.items():
    (DIRECTORY / name).write_text(text)
    print(f"reference: docs/reference/{name}")
