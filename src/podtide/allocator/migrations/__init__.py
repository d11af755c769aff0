"""How the allocator's database came to be as it is: one file per step, in alembic's form, run by `store.migration`."""
