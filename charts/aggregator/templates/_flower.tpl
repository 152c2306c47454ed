{{/* Every flag and variable of Flower 1.41 that this chart uses. The ports and paths belong to it: SuperLink serves
     Fleet, Control and Runtime on one port, so it is bound to loopback and only the edge is seen from outside.
     `aggregator.server.runner` stands in for Flower's SuperExec. */}}
{{- define "aggregator.flowerEnvironment" -}}
- {name: FLWR_TELEMETRY_ENABLED, value: "0"}
- {name: FLWR_DISABLE_UPDATE_CHECK, value: "1"}
- {name: FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION, value: "1"}
- {name: FLWR_HOME, value: /tmp/flwr}
- {name: HOME, value: /tmp}
{{- end }}

{{- define "aggregator.superlinkCommand" -}}
- python
- -m
- aggregator.server.superlink
- --host=127.0.0.1
- --port=8000
- --ssl-certfile=/run/loopback/tls.crt
- --ssl-keyfile=/run/loopback/tls.key
- --ssl-ca-certfile=/run/loopback/ca.crt
- --isolation=process
- --database=/var/lib/fedsynth/superlink.sqlite
- --enable-supernode-auth
- --disable-runtime-dependency-installation
{{- end }}

{{- define "aggregator.runnerCommand" -}}
- python
- -m
- aggregator.server.runner
- localhost:8000
- /run/loopback/ca.crt
{{- end }}
