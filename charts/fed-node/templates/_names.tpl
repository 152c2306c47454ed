{{/* Names, labels, and the one place where an image is named. */}}
{{- define "fed-node.name" -}}
{{- if contains "fed-node" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-fed-node" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "fed-node.selector" -}}
app.kubernetes.io/name: fed-node
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "fed-node.labels" -}}
{{ include "fed-node.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: fedsynth
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "fed-node.image" -}}
{{- $image := .Values.images.node }}
{{- if $image.digest }}{{ printf "%s@%s" $image.repository $image.digest }}
{{- else }}{{ printf "%s:%s%s" $image.repository (.Values.images.tag | default .Chart.AppVersion) (ternary "-cuda" "" .Values.gpu.enabled) }}{{ end }}
{{- end }}

{{- define "fed-node.claim" -}}
{{ .Values.storage.existingClaim | default (printf "%s-home" (include "fed-node.name" .)) }}
{{- end }}

{{/* Whether the endpoint is a Service of this cluster, NAME.NAMESPACE.svc, by its name. */}}
{{- define "fed-node.inCluster" -}}
{{- if regexMatch "^[a-z0-9-]+\\.[a-z0-9-]+\\.svc(\\.cluster\\.local)?:" .Values.aggregator.endpoint }}yes{{ else }}no{{ end }}
{{- end }}
