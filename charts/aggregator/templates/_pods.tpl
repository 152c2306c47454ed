{{/* What every pod of the release has in common: restricted pod security, no API token, nothing written to the image. */}}
{{- define "aggregator.podDefaults" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  {{- if not .Values.pod.platformAssignsUser }}
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  {{- end }}
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.images.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.pod.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pod.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pod.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pod.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{- define "aggregator.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* A pod that speaks to the Control API, as jobs and tests do: (dict "root" . "command" (list …)) */}}
{{- define "aggregator.operatorPod" -}}
restartPolicy: Never
{{ include "aggregator.podDefaults" .root }}
containers:
  - name: operator
    image: {{ include "aggregator.image" (list .root "aggregator") }}
    imagePullPolicy: {{ .root.Values.images.pullPolicy }}
    command: {{ toJson .command }}
    env: {{- include "aggregator.flowerEnvironment" .root | nindent 6 }}
      - {name: FEDSYNTH_CONTROL, value: {{ printf "%s-control:8444" (include "aggregator.name" .root) | quote }}}
      - {name: FEDSYNTH_CONTROL_FILES, value: /etc/fedsynth/control}
      - {name: FEDSYNTH_JOB, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: "metadata.labels['job-name']"}}}
    securityContext: {{- include "aggregator.containerSecurity" .root | nindent 6 }}
    resources: {{- toYaml .root.Values.resources.job | nindent 6 }}
    volumeMounts:
      - {name: control, mountPath: /etc/fedsynth/control, readOnly: true}
      - {name: given, mountPath: /etc/fedsynth/given, readOnly: true}
      - {name: tmp, mountPath: /tmp}
volumes:
  - name: control
    secret: {secretName: {{ .root.Values.control.existingSecret }}, defaultMode: 0440}
  - name: given
    configMap: {name: {{ .given }}}
  - name: tmp
    emptyDir: {sizeLimit: 64Mi}
{{- end }}

{{/* Parts of network policies: who may read metrics, and the way to the cluster's DNS. */}}
{{- define "aggregator.whoReadsMetrics" -}}
{{- if .Values.networkPolicy.metricsNamespaceLabels }}
- namespaceSelector:
    matchLabels: {{- toYaml .Values.networkPolicy.metricsNamespaceLabels | nindent 6 }}
{{- else }}
- podSelector: {}  # of this namespace
{{- end }}
{{- end }}

{{- define "aggregator.dns" -}}
ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
to:
  - namespaceSelector: {{- if .Values.networkPolicy.dnsNamespaceLabels }}
      matchLabels: {{- toYaml .Values.networkPolicy.dnsNamespaceLabels | nindent 8 }}{{ else }} {}{{ end }}
{{- end }}
