"""Where trials run: in this process, in worker processes, or on a cluster.

Four words say where. A *slot* evaluates one trial at a time, and pulls the next as soon as it is
free. A *worker* is what a slot evaluates in: a thread, a process of this machine, or a process on
one of the cluster's machines. A *pool* holds workers, and replaces one that dies. A *cluster* is
other machines, joined by an address; its own workers come and go, each with a number of slots.
"""
