# The base of both sides: Python, the pinned libraries, this package. Aggregator and node are thin layers above it, so
# they share everything large. Nothing that installs or compiles is left in it, not even in a lower layer: the last
# stage starts from nothing and takes finished folders.
#
#   docker build --build-arg TORCH_INDEX=https://download.pytorch.org/whl/cpu -t fedsynth/base:0.2.0 .    CPU
#   docker build --build-arg LOCK=cuda -t fedsynth/base:0.2.0-cuda .                                      CUDA, from PyPI
#
# Every package is named by its hash (images/locks, made by `make lock`), so it does not matter which index or mirror it
# comes from. The base is named by its digest. Files and byte code do not depend on when they are made.
ARG PYTHON=python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b

FROM ${PYTHON} AS build
ARG LOCK=cpu
ARG TORCH_INDEX=
ENV SOURCE_DATE_EPOCH=1767225600
WORKDIR /source
COPY images/locks locks
# The locks hold the drivers that SQL sources may name; a party that needs another adds it to pyproject.toml and locks.
RUN python -m venv --without-pip /opt/fedsynth && \
    pip --python /opt/fedsynth/bin/python install --no-cache-dir --require-hashes --only-binary :all: --no-deps \
        ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} -r locks/$LOCK.txt
# Out with headers, tests, installers, and what only an operator's machine needs: no pod speaks to the cluster's API.
# torch needs one of its binaries.
RUN rm -rf /opt/fedsynth/bin/uv /opt/fedsynth/bin/uvx && \
    cd /opt/fedsynth/lib/python3.11/site-packages && \
    rm -rf torch/include torch/share torch/lib/*.a pyarrow/include pyarrow/src pyarrow/tests \
        kubernetes kubernetes-* pyhelm3 pyhelm3-* && \
    find torch/bin -type f -not -name torch_shm_manager -delete && \
    find . -type d \( -name tests -o -name test \) -not -path './torch/*' -not -path './sympy/*' -prune -exec rm -rf {} +

FROM build AS package
COPY pyproject.toml README.md LICENSE ./
COPY synth synth
COPY crypto crypto
COPY fed_node fed_node
COPY aggregator aggregator
COPY fedsynth fedsynth
# Compiled here: the root file system is read-only at run time, so nothing could be cached there.
RUN python -m venv --without-pip /builder && \
    pip --python /builder/bin/python install --no-cache-dir --require-hashes --only-binary :all: -r locks/build.txt && \
    pip --python /builder/bin/python wheel --no-deps --no-build-isolation --no-index -w /wheels . && \
    touch /stamp && \
    pip --python /opt/fedsynth/bin/python install --no-cache-dir --no-deps --no-index /wheels/*.whl && \
    mkdir /package && cd /opt/fedsynth && find . -newer /stamp -type f | tar -cf - -T - | tar -xf - -C /package

FROM ${PYTHON} AS root
RUN rm -rf /opt/* /usr/local/bin/pip* /usr/local/lib/python3.11/site-packages/* /usr/local/lib/python3.11/ensurepip \
        /usr/bin/pip* /usr/lib/python3/dist-packages/pip* /usr/lib/python3/dist-packages/setuptools* \
        /usr/lib/python3/dist-packages/wheel* /usr/lib/python3.11/ensurepip /usr/share/python-wheels \
        /usr/share/doc /usr/share/man /usr/share/locale /usr/share/info \
        /var/lib/apt /var/cache/* /var/log/* /root/.cache /tmp/* && \
    echo 'fedsynth:x:10001:10001::/tmp:/usr/sbin/nologin' >> /etc/passwd && echo 'fedsynth:x:10001:' >> /etc/group

FROM scratch
COPY --from=root / /
COPY --from=build /opt/fedsynth /opt/fedsynth
COPY --from=package /package /opt/fedsynth
# Flower: no telemetry, no question whether there is an update, nothing installed at run time.
ENV PATH=/opt/fedsynth/bin:/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 HOME=/tmp PYTHONUNBUFFERED=1 \
    FLWR_HOME=/tmp/flwr FLWR_TELEMETRY_ENABLED=0 FLWR_DISABLE_UPDATE_CHECK=1 \
    FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION=1
USER 10001:10001
WORKDIR /tmp
ARG VERSION=0.2.0
LABEL org.opencontainers.image.title="fedsynth" \
      org.opencontainers.image.description="Synthetic tables made together by institutions that may not pool their rows" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0"
