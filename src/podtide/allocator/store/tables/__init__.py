"""The allocator's tables: a row as a struct, and the SQL that reads and writes it.

All of it is scripts (`store.script`), which a driver carries out: nothing here touches a database by itself. What may be done with rows is
decided in the operations of `store`. Start with `subnet_row` and `container_row`.
"""
