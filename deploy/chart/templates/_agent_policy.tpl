{{/*
An agent is held to its own node. All agents are one service account, so roles cannot tell them apart; but the token that
a pod is given names the node the pod is on, and the API server vouches for it. A token that names none may write nothing.

The parts that the policies share: whom they are for, what they may refer to, what must hold for all kinds, the binding.
*/}}

{{- define "podtide.agentPolicy.match" -}}
failurePolicy: Fail
matchConditions:
  - name: by-an-agent
    expression: request.userInfo.username == 'system:serviceaccount:{{ .Release.Namespace }}:podtide-agent'
{{- end }}

{{- define "podtide.agentPolicy.variables" -}}
- name: node
  expression: request.userInfo.?extra[?'authentication.kubernetes.io/node-name'][?0].orValue('')
- name: isNew
  expression: request.operation == 'CREATE'
{{- end }}

{{- define "podtide.agentPolicy.validations" -}}
- expression: variables.node != ''
  message: the agent's token names no node; let the agent run with the token that its pod is given
  reason: Forbidden
{{- end }}

{{- define "podtide.agentPolicy.binding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ .name }}
  labels: {{- include "podtide.labels" (dict "root" .root "component" "agent") | nindent 4 }}
spec:
  policyName: {{ .name }}
  validationActions: [Deny]
{{- end }}
