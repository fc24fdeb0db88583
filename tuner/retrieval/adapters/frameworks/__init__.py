"""Objects of retrieval frameworks as retrievers: a factory of the user's makes one a process.

A framework is three functions: what its objects can be set to, an object of a trial's own with
values set, and the documents that this finds. All else is shared.
"""
