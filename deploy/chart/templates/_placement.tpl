{{/*
Placement: nodes publish how many addresses their pods can have, and pods request one. What several templates say of it.

Two policies add requests to pods: one of addresses, and one of secondary networks where the values name some. Each says by
`amounts` which resources the pod lacks, and how much of each its first container is to request.
*/}}

{{/* "true" if the API server can add requests to pods. */}}
{{- define "podtide.placement.mutates" -}}
{{- if .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" }}true{{ end }}
{{- end }}

{{/* "true" if nodes that can get no address are tainted. */}}
{{- define "podtide.placement.taints" -}}
{{- $taint := .Values.placement.taint }}
{{- $isWanted := ternary (not (include "podtide.placement.mutates" .)) (eq $taint "always") (eq $taint "auto") }}
{{- if and .Values.placement.enabled $isWanted }}true{{ end }}
{{- end }}

{{/*
Which pods are meant: those that take an address of a node's pool. podtide's own do not wait for a resource that podtide has yet
to publish.

A policy that fails refuses the pod. It fails only for a pod that no node could run, such as one of thousands of containers, by
the limits that the API server sets to expressions; if it let such pods pass, they would be a way around a quota.
*/}}
{{- define "podtide.placement.pods" -}}
failurePolicy: Fail
# A webhook that runs later may change resources, or attach networks.
reinvocationPolicy: IfNeeded
matchConstraints:
  {{- if eq .Values.placement.pods "labelled" }}
  namespaceSelector:
    matchLabels: { podtide.io/placement: enabled }
  {{- end }}
  resourceRules:
    - apiGroups: [""]
      apiVersions: ["*"]
      resources: [pods]
      operations: [CREATE]
matchConditions:
  # One without containers is refused by the API server, in words of its own.
  - name: with-containers
    expression: size(object.spec.containers) > 0
  - name: not-on-its-nodes-network
    expression: "!object.spec.?hostNetwork.orValue(false)"
  # Static pods run before an API server is asked, and what it has of them is a copy.
  - name: not-static
    expression: "!('kubernetes.io/config.mirror' in object.metadata.?annotations.orValue({}))"
  - name: not-podtides-own
    expression: >-
      request.namespace != '{{ .Release.Namespace }}' ||
      object.metadata.?labels[?'app.kubernetes.io/name'].orValue('') != '{{ .Values.nameOverride | default "podtide" }}'
{{- end }}

{{/* Of an extended resource request and limit have to be the same. */}}
{{- define "podtide.placement.mutations" -}}
- patchType: JSONPatch
  jsonPatch:
    expression: >-
      size(variables.amounts) == 0 ? [] :
      ['requests', 'limits'].filter(field, !(field in object.spec.containers[0].resources)).map(field,
      JSONPatch{op: 'add', path: '/spec/containers/0/resources/' + field, value: {}}) +
      variables.amounts.map(resource, JSONPatch{op: 'add', value: variables.amounts[resource],
      path: '/spec/containers/0/resources/requests/' + jsonpatch.escapeKey(resource)}) +
      variables.amounts.map(resource, JSONPatch{op: 'add', value: variables.amounts[resource],
      path: '/spec/containers/0/resources/limits/' + jsonpatch.escapeKey(resource)})
{{- end }}

{{- define "podtide.placement.binding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata:
  name: {{ .name }}
  labels: {{- include "podtide.labels" (dict "root" .root "component" "placement") | nindent 4 }}
spec:
  policyName: {{ .name }}
{{- end }}

{{/*
JSON in regular expressions: a text, and a list or an object with as much in it as anyone writes. Expressions of an API server
cannot parse JSON, and RE2 cannot count brackets: so many levels are written out.
*/}}
{{- define "podtide.placement.jsonText" -}}
"(?:[^"\\]|\\.)*"
{{- end }}

{{- define "podtide.placement.jsonNested" -}}
{{- $text := include "podtide.placement.jsonText" . }}
{{- $nested := printf `[\[{](?:[^\[\]{}"]|%s)*[\]}]` $text }}
{{- range until 4 }}
{{- $nested = printf `[\[{](?:[^\[\]{}"]|%s|%s)*[\]}]` $text $nested }}
{{- end }}
{{- $nested }}
{{- end }}

{{/* An object, with all in it. */}}
{{- define "podtide.placement.jsonObject" -}}
{{ printf `\{(?:[^\[\]{}"]|%s|%s)*\}` (include "podtide.placement.jsonText" .) (include "podtide.placement.jsonNested" .) }}
{{- end }}

{{/* An object from its beginning to the end of the text that is its own member of this name, in any case, as Go reads JSON. */}}
{{- define "podtide.placement.jsonMember" -}}
{{- $text := include "podtide.placement.jsonText" . }}
{{- $member := printf `\s*%s\s*:(?:[^\[\]{}",]|%s|%s)*,` $text $text (include "podtide.placement.jsonNested" .) -}}
{{ printf `^\{(?:%s)*\s*"(?i:%s)"\s*:\s*"[^"\\]*"` $member . }}
{{- end }}
