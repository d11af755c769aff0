"""The owner of the subnets: which address is reserved for which node, in a database, for one cluster or for many.

    port          the contract, with its promises; what it speaks of is in subnets, containers, quarantine, terms and errors
    store/        the port on SQLite or PostgreSQL
    service/      the port over HTTP: the server
    client/       and the client
    interceptor   the port in front of another one, for what records, delays or fails requests

Only the controller and the command line use it; agents do not know it. Start with `port`.
"""
