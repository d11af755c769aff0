"""The databases that the allocator can be kept in, each behind one interface: SQLite, and PostgreSQL.

A driver carries out transaction scripts (`store.script`) and operations in a subnet's transaction. It knows connections, locks,
threads and how to commit, and nothing of addresses. It may touch files and sockets. Start with `database`, what is asked of each.
"""
