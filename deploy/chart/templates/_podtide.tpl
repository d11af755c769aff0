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
priorityClassName: {{ .values.priorityClassName | quote }}
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

{{- define "podtide.unprivileged" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{/* A pod on its node's own network finds Services by name only if told to. */}}
{{- define "podtide.network" -}}
hostNetwork: {{ .hostNetwork }}
dnsPolicy: {{ .hostNetwork | ternary "ClusterFirstWithHostNet" "ClusterFirst" }}
{{- end }}
