# The base of both sides: Python, the pinned libraries, this package. Aggregator and node are thin layers above it, so
# they share everything large. Nothing that installs or compiles is left in it, not even in a lower layer: the last
# stage starts from nothing and takes finished folders.
#
#   docker build -t fedsynth/base:0.2.0 .                                    the CPU build of torch, from pip's own index
#   docker build --build-arg TORCH_INDEX=URL -t fedsynth/base:0.2.0 .        … from another index, e.g. PyTorch's CPU one
#   docker build --build-arg TORCH_INDEX=URL -t fedsynth/base:0.2.0-cuda .   … or its CUDA one
ARG PYTHON=python:3.11-slim

FROM ${PYTHON} AS build
ARG TORCH=torch==2.13.0
ARG TORCH_INDEX=
# Drivers that SQL sources may name; a party that needs another adds it here.
ARG DRIVERS="psycopg[binary]==3.3.8"
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
RUN python -m venv --without-pip /opt/fedsynth && \
    sed -n '/^dependencies = \[/,/^\]/s/^ *"\([^"]*\)".*/\1/p' pyproject.toml | grep -v '^torch==' > requirements.txt && \
    pip --python /opt/fedsynth/bin/python install --no-cache-dir -c constraints.txt \
        ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} "$TORCH" && \
    pip --python /opt/fedsynth/bin/python install --no-cache-dir -c constraints.txt -r requirements.txt "$DRIVERS"
# Out with headers, tests, installers, and what only an operator's machine needs: no pod speaks to the cluster's API.
# torch needs one of its binaries.
RUN rm -rf /opt/fedsynth/bin/uv /opt/fedsynth/bin/uvx && \
    cd /opt/fedsynth/lib/python3.11/site-packages && \
    rm -rf torch/include torch/share torch/lib/*.a pyarrow/include pyarrow/src pyarrow/tests \
        kubernetes kubernetes-* pyhelm3 pyhelm3-* && \
    find torch/bin -type f -not -name torch_shm_manager -delete && \
    find . -type d \( -name tests -o -name test \) -not -path './torch/*' -not -path './sympy/*' -prune -exec rm -rf {} +

FROM build AS package
COPY synth synth
COPY crypto crypto
COPY fed_node fed_node
COPY aggregator aggregator
COPY fedsynth fedsynth
# Compiled here: the root file system is read-only at run time, so nothing could be cached there.
RUN touch /stamp && \
    pip --python /opt/fedsynth/bin/python install --no-cache-dir --no-deps . && \
    mkdir /package && cd /opt/fedsynth && find . -newer /stamp -type f | tar -cf - -T - | tar -xf - -C /package

FROM ${PYTHON} AS root
RUN rm -rf /opt/wheels /usr/local/bin/pip* /usr/local/lib/python3.11/site-packages/* /usr/local/lib/python3.11/ensurepip \
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
