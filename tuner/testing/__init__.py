"""The contract suite of retrievers: any adapter, of this project or not, is checked by it.

It needs no test framework:

    from tuner.testing import RetrieverCase, check_retriever

    check_retriever(RetrieverCase(make, queries, document_ids=ids))

With pytest each check becomes a test of its own:

    class TestMyRetriever(RetrieverContract):
        case = RetrieverCase(make, queries, document_ids=ids)
"""

from tuner.testing.case import RetrieverCase
from tuner.testing.suite import CHECKS, RetrieverContract, check_retriever

__all__ = ["CHECKS", "RetrieverCase", "RetrieverContract", "check_retriever"]
