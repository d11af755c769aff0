{{/* The allocator's pod: the same on SQLite and on PostgreSQL, but for the volume. */}}
{{- define "podtide.allocator" -}}
{{- $allocator := .Values.allocator }}
{{- $of := dict "root" . "component" "allocator" "values" $allocator -}}
metadata:
  {{- include "podtide.podMetadata" $of | nindent 2 }}
spec:
  # It asks nothing of the cluster it runs in.
  serviceAccountName: podtide-allocator
  automountServiceAccountToken: false
  # Until it has granted a node's first addresses no pod there can have one: it must do without.
  {{- include "podtide.network" $allocator | nindent 2 }}
  {{- include "podtide.scheduling" $of | nindent 2 }}
  securityContext: {{- include "podtide.unprivileged" . | nindent 4 }}
  containers:
    - name: allocator
      image: {{ include "podtide.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - allocator
        - --log-level={{ .Values.logLevel }}
        - --listen={{ .Values.listenAddress }}:{{ $allocator.port }}
        - --tokens=/etc/podtide/tokens/tokens
        {{- if $allocator.tlsSecret }}
        - --tls-cert=/etc/podtide/tls/tls.crt
        - --tls-key=/etc/podtide/tls/tls.key
        {{- end }}
        - --drain={{ $allocator.drain }}
        {{- with $allocator.extraArgs }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      env:
        - name: PODTIDE_DATABASE
          {{- if $allocator.database.urlSecret }}
          valueFrom: { secretKeyRef: { name: {{ $allocator.database.urlSecret }}, key: url } }
          {{- else }}
          value: sqlite:////var/lib/podtide/subnets.db
          {{- end }}
        {{- with include "podtide.env" $of | trim }}
        {{- . | nindent 8 }}
        {{- end }}
      ports:
        - { name: api, containerPort: {{ $allocator.port }} }
      startupProbe: {{- include "podtide.startup" (dict "port" "api" "scheme" (empty $allocator.tlsSecret | ternary "HTTP" "HTTPS")) | nindent 8 }}
      livenessProbe:
        httpGet: { path: /healthz, port: api, scheme: {{ empty $allocator.tlsSecret | ternary "HTTP" "HTTPS" }} }
        periodSeconds: 20
        timeoutSeconds: 5
      readinessProbe:
        httpGet: { path: /readyz, port: api, scheme: {{ empty $allocator.tlsSecret | ternary "HTTP" "HTTPS" }} }
        periodSeconds: 2
        timeoutSeconds: 5
      resources: {{- toYaml $allocator.resources | nindent 8 }}
      securityContext: {{- include "podtide.confined" . | nindent 8 }}
      volumeMounts:
        - { name: tokens, mountPath: /etc/podtide/tokens, readOnly: true }
        {{- if $allocator.tlsSecret }}
        - { name: tls, mountPath: /etc/podtide/tls, readOnly: true }
        {{- end }}
        {{- if not $allocator.database.urlSecret }}
        - { name: subnets, mountPath: /var/lib/podtide }
        - { name: tmp, mountPath: /tmp }
        {{- end }}
        {{- with $allocator.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - { name: tokens, secret: { secretName: {{ include "podtide.tokensSecret" . }} } }
    {{- with $allocator.tlsSecret }}
    - { name: tls, secret: { secretName: {{ . }} } }
    {{- end }}
    {{- if not $allocator.database.urlSecret }}
    - { name: tmp, emptyDir: {} } # SQLite's own, for what does not fit into memory
    {{- with $allocator.persistence.hostPath }}
    - { name: subnets, hostPath: { path: {{ . | quote }}, type: Directory } }
    {{- end }}
    {{- end }}
    {{- with $allocator.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
