"""Pages of reference, written from the code by `make reference`: docs/reference/.

What a page says comes from where the programs have it: help texts, schemas, metric families, the OpenAPI document. Where the
code has no sentence for something, the page cannot be made, and the error names it. A test holds the pages equal to the code.
"""
