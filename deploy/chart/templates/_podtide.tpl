{{/*
What several templates say. Names are fixed: there is one podtide in a cluster, its objects are in kube-system, and programs, policies
and the manual name them. `nameOverride` is for labels alone.
*/}}

{{- define "podtide.labels" -}}
app.kubernetes.io/name: {{ .root.Values.nameOverride | default "podtide" | toYaml }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "podtide.selector" -}}
app.kubernetes.io/name: {{ .root.Values.nameOverride | default "podtide" | toYaml }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "podtide.image" -}}
{{- $image := .Values.image }}
{{- $tag := $image.tag | default (empty $image.digest | ternary .Chart.AppVersion "") -}}
{{ $image.repository }}{{ with $tag }}:{{ . }}{{ end }}{{ with $image.digest }}@{{ . }}{{ end }}
{{- end }}

{{/* Of a pod of `.component`: the chart's labels, which selectors go by, and labels and annotations of `.values`. */}}
{{- define "podtide.podMetadata" -}}
labels:
  {{- include "podtide.labels" . | nindent 2 }}
  {{- with .values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .values.podAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Where its pods run, and how important they are; `.values` are those of one program. */}}
{{- define "podtide.scheduling" -}}
{{- with .values.priorityClassName -}}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
  {{- $own := dict "labelSelector" (dict "matchLabels" (include "podtide.selector" $ | fromYaml)) }}
  - {{- toYaml (hasKey . "labelSelector" | ternary . (merge $own .)) | nindent 4 }}
  {{- end }}
{{- end }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
Settings travel as variables: a program reads those that are its own. A setting that `.values.extraEnv` has as well is left to that: an
API server refuses a variable that is there twice.
*/}}
{{- define "podtide.env" -}}
{{- $extra := .values.extraEnv | default list }}
{{- $names := list }}
{{- range $extra }}
{{- if has .name (list "NODENAME" "PODTIDE_DATABASE") }}
{{- fail (printf "%s.extraEnv has %s, which the chart itself sets: leave it out" $.component .name) }}
{{- end }}
{{- $names = append $names .name }}
{{- end }}
{{- range $setting, $value := .root.Values.settings }}
{{- $name := printf "PODTIDE_%s" (upper $setting) }}
{{- if not (has $name $names) }}
- { name: {{ $name }}, value: {{ $value | toString | quote }} }
{{- end }}
{{- end }}
{{- with $extra }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* For who is not root and writes nothing outside its volumes. */}}
{{- define "podtide.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{/* For who is root on a node. Where pods are on a bridge, it puts the gateways on that, or removes it. */}}
{{- define "podtide.confinedToNode" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL]{{ if and .Values.cni.install .Values.agent.nodePool (eq .Values.cni.type "bridge") }}, add: [NET_ADMIN]{{ end }} }
{{- end }}

{{- define "podtide.unprivileged" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{/* Until it first answers nobody asks whether it lives: migrating a database, or replaying a journal, may take minutes. */}}
{{- define "podtide.startup" -}}
httpGet: { path: /healthz, port: {{ .port }}{{ with .scheme }}, scheme: {{ . }}{{ end }} }
periodSeconds: 2
timeoutSeconds: 5
failureThreshold: 150
{{- end }}

{{/* A pod on its node's own network finds Services by name only if told to. */}}
{{- define "podtide.network" -}}
hostNetwork: {{ .hostNetwork }}
dnsPolicy: {{ .hostNetwork | ternary "ClusterFirstWithHostNet" "ClusterFirst" }}
{{- end }}

{{/* For what a test may do: made before it, and gone after it. */}}
{{- define "podtide.test.rights" -}}
helm.sh/hook: test
helm.sh/hook-weight: "-2"
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
