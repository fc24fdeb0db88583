"""An HTTP service as a retriever: POST JSON, requests and responses mapped by JMESPath."""

from tuner.retrieval.adapters.http.retriever import Http

__all__ = ["Http"]
