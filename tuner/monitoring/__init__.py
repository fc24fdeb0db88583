"""The serving side: how long calls take, how many there are, and what they cost the machine."""

from tuner.monitoring.latency import LatencySummary, LatencyTracker, ThroughputTracker
from tuner.monitoring.resources import ResourceMonitor, ResourceSample

__all__ = [
    "LatencySummary",
    "LatencyTracker",
    "ResourceMonitor",
    "ResourceSample",
    "ThroughputTracker",
]
