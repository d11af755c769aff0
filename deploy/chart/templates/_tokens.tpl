{{/* The Secrets by which programs and people show the allocator who they are; tokens.yaml makes those that are not named. */}}

{{- define "podtide.tokenSecret" -}}
{{ .Values.controller.allocator.tokenSecret | default "podtide-allocator-token" }}
{{- end }}

{{- define "podtide.tokensSecret" -}}
{{ .Values.allocator.tokensSecret | default "podtide-allocator-tokens" }}
{{- end }}

{{- define "podtide.adminTokenSecret" -}}
{{ .Values.allocator.adminTokenSecret | default "podtide-admin-token" }}
{{- end }}

{{- define "podtide.dashboardTokenSecret" -}}
{{ .Values.dashboard.tokenSecret | default "podtide-dashboard-token" }}
{{- end }}

{{/* By address, from the variables that every container gets: names are resolved by pods that need addresses. */}}
{{- define "podtide.allocatorUrl" -}}
{{- if .Values.controller.allocator.url -}}
{{ .Values.controller.allocator.url }}
{{- else -}}
{{- $host := hasPrefix "[" .Values.listenAddress | ternary "[$(PODTIDE_ALLOCATOR_SERVICE_HOST)]" "$(PODTIDE_ALLOCATOR_SERVICE_HOST)" -}}
{{ empty .Values.allocator.tlsSecret | ternary "http" "https" }}://{{ $host }}:$(PODTIDE_ALLOCATOR_SERVICE_PORT)
{{- end }}
{{- end }}
