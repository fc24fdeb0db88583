"""Contracts that any kind must keep, of this project or not, as suites that it can be run through.

A suite needs no test framework:

    from tuner.testing import BackendCase, check_backend

    check_backend(BackendCase(MyBackend))

With pytest each check becomes a test of its own:

    class TestMyBackend(BackendContract):
        case = BackendCase(MyBackend)
"""

from tuner.testing.backends import BackendCase, BackendContract, check_backend
from tuner.testing.executions import ExecutionCase, ExecutionContract, check_execution
from tuner.testing.formats import FormatCase, FormatContract, check_format
from tuner.testing.indexes import IndexCase, IndexContract, check_indexes
from tuner.testing.metrics import MetricCase, MetricContract, check_metric
from tuner.testing.retrievers import RetrieverCase, RetrieverContract, check_retriever

__all__ = [
    "BackendCase",
    "BackendContract",
    "ExecutionCase",
    "ExecutionContract",
    "FormatCase",
    "FormatContract",
    "IndexCase",
    "IndexContract",
    "MetricCase",
    "MetricContract",
    "RetrieverCase",
    "RetrieverContract",
    "check_backend",
    "check_execution",
    "check_format",
    "check_indexes",
    "check_metric",
    "check_retriever",
]
