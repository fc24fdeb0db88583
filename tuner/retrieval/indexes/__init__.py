"""Indexes as parameters: each setting of a system's index is built once, kept, and asked."""

from tuner.retrieval.indexes.indexed import Indexed as Indexed
from tuner.retrieval.indexes.indexed import indexed_in as indexed_in
from tuner.retrieval.indexes.limits import IndexLimits as IndexLimits
