{{/* Every flag and variable of Flower 1.41 that this chart uses. The SuperNode's own API is bound to loopback: nothing
     connects inwards. `fed_node.process.supernode` starts Flower's SuperNode; `fed_node.process.tasks` stands in for its SuperExec, and
     runs the code of this image whatever bundle the aggregator sends. */}}
{{- define "fed-node.flowerEnvironment" -}}
- {name: FLWR_TELEMETRY_ENABLED, value: "0"}
- {name: FLWR_DISABLE_UPDATE_CHECK, value: "1"}
- {name: FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION, value: "1"}
- {name: FLWR_HOME, value: /tmp/flwr}
- {name: HOME, value: /tmp}
{{- end }}

{{- define "fed-node.supernodeCommand" -}}
- python
- -m
- fed_node.process.supernode
- --superlink={{ required "aggregator.endpoint is required: HOST:PORT, as the kit says" .Values.aggregator.endpoint }}
- --root-certificates=/etc/fedsynth/given/ca.crt
- --auth-supernode-private-key=/etc/fedsynth/keys/node.key
- --isolation=process
- --host=127.0.0.1
- --port=9094
- --node-config=party="{{ required "party.name is required: this party's name in plans" .Values.party.name }}"
{{- end }}

{{- define "fed-node.tasksCommand" -}}
- python
- -m
- fed_node.process.tasks
- 127.0.0.1:9094
{{- end }}
