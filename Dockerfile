# The command line, for `configs/nightly/kubernetes-cronjob.yaml` or any other scheduler:
#   docker build -t registry.example.org/graphrag-tuner:0.1.0 .
#   docker run --rm --init -v /srv/tuning:/srv/tuning registry.example.org/graphrag-tuner:0.1.0 nightly nightly.yaml
# What your own retriever needs goes into an image of yours: FROM this one, RUN pip install ….
FROM python:3.12-slim-bookworm

COPY pyproject.toml README.md LICENSE /source/
COPY tuner /source/tuner
RUN pip install --no-cache-dir /source && rm -r /source \
    && useradd --uid 10001 --user-group --create-home tuning \
    && install -d -o tuning -g tuning /srv/tuning

# Configuration, runs/, MLflow's store and the cache of indexes: all that outlasts a container.
VOLUME /srv/tuning
WORKDIR /srv/tuning
ENV TUNER_CACHE_DIR=/srv/tuning/cache PYTHONUNBUFFERED=1
USER 10001:10001
ENTRYPOINT ["tuner"]
