{{/* What several templates say. Names are fixed: there is one podtide in a cluster, and its objects are in kube-system. */}}

{{- define "podtide.labels" -}}
app.kubernetes.io/name: podtide
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "podtide.selector" -}}
app.kubernetes.io/name: podtide
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "podtide.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Where its pods run, and how important they are; `.values` are those of one program. */}}
{{- define "podtide.placement" -}}
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
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Settings travel as variables: a program reads those that are its own. */}}
{{- define "podtide.settings" -}}
{{- range $name, $value := .Values.settings -}}
- { name: PODTIDE_{{ upper $name }}, value: {{ $value | toString | quote }} }
{{ end }}
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
