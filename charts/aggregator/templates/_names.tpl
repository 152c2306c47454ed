{{/* Names, labels, and the one place where an image is named. */}}
{{- define "aggregator.name" -}}
{{- if contains "aggregator" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-aggregator" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "aggregator.selector" -}}
app.kubernetes.io/name: aggregator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "aggregator.labels" -}}
{{ include "aggregator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: fedsynth
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* image: (list . "aggregator") → the pinned reference */}}
{{- define "aggregator.image" -}}
{{- $root := index . 0 }}{{- $image := index $root.Values.images (index . 1) }}
{{- if $image.digest }}{{ printf "%s@%s" $image.repository $image.digest }}
{{- else }}{{ printf "%s:%s" $image.repository ($root.Values.images.tag | default $root.Chart.AppVersion) }}{{ end }}
{{- end }}

{{- define "aggregator.claim" -}}
{{ .Values.storage.existingClaim | default (printf "%s-state" (include "aggregator.name" .)) }}
{{- end }}
