"""Requests to one service: limited, paced, repeated where that helps; one connection a process."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cache, partial
from typing import Any
from urllib.parse import quote

from tuner.core.errors import OutageError, TunerError, one_line
from tuner.core.outages import is_out_of_order
from tuner.retrieval.adapters.answers import shown
from tuner.retrieval.adapters.http.headers import Headers, resolve, resolve_url, without_secrets
from tuner.retrieval.adapters.waiting import fill_places

TOO_MANY = 429
NOT_THERE = (404, 410)
# Longer than this nobody waits: the trial fails and says what the server asked for.
LONGEST_WAIT_S = 60.0
# What httpcore tells just before a request's body goes to a connection that is there.
SENT = "http11.send_request_body.started"


def _unheard() -> None:
    return None


class NotThereError(TunerError):
    """The service does not know what it was asked for."""


@dataclass(frozen=True)
class Service:
    """Where requests go and how; holds names of environment variables, never their values.

    ``url`` may have places, such as ``{index}``, which each request fills.
    """

    url: str
    headers: Headers
    timeout_s: float | None
    retries: int
    retry_wait_s: float
    requests_per_second: float | None
    method: str = "POST"

    @property
    def secrets(self) -> Headers:
        """Return all that names a variable whose value is to be kept out of sight."""
        return (*self.headers, ("url", self.url))


@dataclass(frozen=True)
class _Attempt:
    """One request: what went wrong, how long to wait before another (None: never), the response.

    The response is None unless it can be used. ``is_outage``: what went wrong is the service's
    state, and not what it was asked.
    """

    problem: str = ""
    wait_s: float | None = None
    is_outage: bool = False
    is_not_there: bool = False
    response: Any = None


class Connection:
    """An open connection to a service, and when the next request may be sent.

    All of it runs in this process's event loop, so it needs no locks.
    """

    def __init__(self, service: Service) -> None:
        """Read the headers' secrets from the environment.

        Raises:
            TunerError: a variable is not set in this process.
        """
        import httpx

        self.service = service
        resolve_url(service.url)
        self._next_at = 0.0
        self._client = httpx.AsyncClient(
            headers=resolve(service.headers),
            timeout=None,  # httpx would time each read; the whole answer is timed below
            limits=httpx.Limits(max_connections=None),
        )

    async def send(
        self, body: Any, places: Mapping[str, Any], on_try: Callable[[], None] = _unheard
    ) -> tuple[Any, float]:
        """Send one body, None for none; return the decoded response, and the seconds until its
        last try. ``places`` are the values of the places in the URL. ``on_try`` is called
        just before each try that finds somebody to take it.

        429, 5xx and broken connections are tried again, after a wait that doubles each time, with
        jitter, or after what Retry-After says. A time-out is not: what was slow is slow again.

        Raises:
            OutageError: no response, or one that says that the service is out of order.
            TunerError: another response that is of no use. A reason holds no secret.
        """
        attempt, begin = 0, time.perf_counter()
        while True:
            attempt += 1
            tried_again_s = time.perf_counter() - begin if attempt > 1 else 0.0
            attempted = await self._attempt(body, places, on_try)
            if attempted.response is not None:
                return self._decoded(attempted.response, places), tried_again_s
            wait_s = attempted.wait_s
            if wait_s is None or attempt > self.service.retries or wait_s > LONGEST_WAIT_S:
                tried = f" (tried {attempt} times)" if attempt > 1 else ""
                asked = (
                    f"; it asks to wait {wait_s:.0f} s"
                    if wait_s is not None and wait_s > LONGEST_WAIT_S
                    else ""
                )
                kind = OutageError if attempted.is_outage else TunerError
                kind = NotThereError if attempted.is_not_there else kind
                raise self._error(f"{attempted.problem}{tried}{asked}", places, kind)
            # Jitter, so that requests that failed together do not come back together. It decides
            # no result, so it is not drawn from the study's seed.
            back_off_s = self.service.retry_wait_s * 2 ** (attempt - 1) * random.uniform(0.5, 1.0)
            await asyncio.sleep(max(wait_s, min(back_off_s, LONGEST_WAIT_S)))

    async def _attempt(
        self, body: Any, places: Mapping[str, Any], on_try: Callable[[], None]
    ) -> _Attempt:
        import httpx

        await self._wait_for_turn()
        url = resolve_url(fill_places(self.service.url, places, partial(quote, safe="")))

        async def hear(event: str, _: Any) -> None:
            if event == SENT:
                on_try()

        heard = {"trace": hear}
        try:
            async with asyncio.timeout(self.service.timeout_s):
                response = await self._client.request(
                    self.service.method, url, json=body, extensions=heard
                )
        except TimeoutError:
            return _Attempt(f"no answer within {self.service.timeout_s:g} s", is_outage=True)
        except httpx.TransportError as error:
            is_refused = isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError)
            problem = f"no answer: {one_line(error)}"
            return _Attempt(problem, None if is_refused else 0.0, is_outage=not is_refused)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            return _Attempt(f"cannot ask: {one_line(error)}")
        if response.is_success:
            return _Attempt(response=response)
        where = f" to {response.headers.get('Location')}" if response.is_redirect else ""
        problem = f"{response.status_code} {response.reason_phrase}{where}: {self._shown(response)}"
        if response.status_code != TOO_MANY and not response.is_server_error:
            status = response.status_code
            return _Attempt(
                problem, is_outage=is_out_of_order(status), is_not_there=status in NOT_THERE
            )
        wait_s = retry_after_s(response.headers.get("Retry-After"))
        if response.status_code == TOO_MANY and wait_s <= LONGEST_WAIT_S:
            # It is meant for all requests of this process.
            pause_until = asyncio.get_running_loop().time() + wait_s
            self._next_at = max(self._next_at, pause_until)
        return _Attempt(problem, wait_s, is_outage=True)

    async def _wait_for_turn(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        turn = max(now, self._next_at)
        if self.service.requests_per_second is not None:
            self._next_at = turn + 1.0 / self.service.requests_per_second
        if turn > now:
            await asyncio.sleep(turn - now)

    def _decoded(self, response: Any, places: Mapping[str, Any]) -> Any:
        try:
            return response.json()
        except (ValueError, RecursionError):
            problem = f"the response is no JSON: {self._shown(response)}"
            raise self._error(problem, places) from None

    def _shown(self, response: Any) -> str:
        return shown(without_secrets(response.text, self.service.secrets))  # before it is cut

    def _error(
        self, reason: str, places: Mapping[str, Any], kind: type[TunerError] = TunerError
    ) -> TunerError:
        text = without_secrets(reason, self.service.secrets)
        return kind(f"{self.service.method} {fill_places(self.service.url, places)}: {text}")


@cache
def connection(service: Service, process_id: int) -> Connection:  # noqa: ARG001
    """Return this process's one connection to a service; a forked process has its own."""
    return Connection(service)


def connect(service: Service) -> Connection:
    """Return the connection of the process that asks."""
    return connection(service, os.getpid())


def retry_after_s(value: str | None) -> float:
    """Read a Retry-After header, seconds or a date; 0 where there is none that can be read.

    >>> retry_after_s("2"), retry_after_s("soon"), retry_after_s(None)
    (2.0, 0.0, 0.0)
    """
    if value is None:
        return 0.0
    try:
        return max(0.0, float(int(value)))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return 0.0
