"""What holds for every test: a slow or loaded machine turns none of them red."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")
