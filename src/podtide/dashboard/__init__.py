"""The live page: subnets, nodes, decisions and health of one cluster, in a browser.

records       what travels to the page, as structs
change_log    which record changed when: a client's backlog is derived from it, never stored
page_state    the records, kept up to date object by object, without I/O
holdings      what one NodeNetworkConfig says of its node
address_map   every address of every subnet: its state and its node
decisions     what changes of objects say was decided, with the core's own arithmetic
decision_notes  decisions numbered and dated, so many at once at most
cluster_health  whether leader, allocator, API server and agents do their part
agent_silence which agents have not answered, without a look at the others
feed          informers and polls that call page_state
pod_finder    pods, looked up when a person asks
…_answers     what the page asks for beside the stream
page_files    the files that a browser loads, with all modules named
compression   gzip of files, answers and the stream
server        HTTP: routes, headers, the token, limits
program       all of it, as a part of a program

It only reads. It may import the controller, for the names and words of conditions, and nothing imports it but the command
line. Start with `page_state`; docs/dashboard.md says what it costs.
"""
