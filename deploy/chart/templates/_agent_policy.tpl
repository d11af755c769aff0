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

{{/*
What a NodeSlicePool says of a pool's name, which is also its Lease's: `params` is each of them in turn. Names of networks
and nodes are put together by dashes, so a name alone does not tell whose it is; the list of who has which slice does. That
is as long as the cluster has nodes, and to read it takes long: it is for names that could be another node's, and are not
plainly this one's.

Of its own kind a policy says three things: `slice`, what a name has behind the node if that is the agent's; `isOfIt`, whether
that is of this NodeSlicePool; and `mayBeOfIt`, whether it could be if the node is another one.
*/}}

{{- define "podtide.agentPolicy.sliceVariables" -}}
- name: network
  expression: params.metadata.?annotations[?'podtide.io/network'].orValue(params.metadata.name)
# In an unnamed network Whereabouts names a pool by node and slice alone. Of a NodeSlicePool that is not podtide's yet
# nobody can tell; podtide calls an unnamed network by its range.
- name: mayBeUnnamed
  expression: >-
    !('podtide.io/network' in params.metadata.?annotations.orValue({})) ||
    {{ include "podtide.agentPolicy.isRange" "variables.network" }}
- name: isOwn
  expression: >-
    object.metadata.name in [
    params.metadata.name + '-' + variables.node, variables.network + '-' + variables.node] ||
    (variables.isOfIt && object.metadata.name in [
    variables.node + '-' + variables.slice, variables.network + '-' + variables.node + '-' + variables.slice])
- name: isAnothers
  expression: >-
    !variables.isOwn && (object.metadata.name.startsWith(variables.network + '-') ||
    object.metadata.name.startsWith(params.metadata.name + '-') ||
    (variables.mayBeUnnamed && variables.mayBeOfIt)) &&
    params.?status.allocations.orValue([]).exists(each,
    object.metadata.name.contains(each.nodeName) && !(each.nodeName in ['', variables.node]) &&
    object.metadata.name in [
    params.metadata.name + '-' + each.nodeName,
    variables.network + '-' + each.nodeName,
    each.nodeName + '-' + {{ include "podtide.agentPolicy.normalised" "each.sliceRange" }},
    variables.network + '-' + each.nodeName + '-' + {{ include "podtide.agentPolicy.normalised" "each.sliceRange" }}])
{{- end }}

{{/* A range as Whereabouts puts it into names. */}}
{{- define "podtide.agentPolicy.normalised" -}}
{{ . }}.replace(':', '-').replace('/', '-')
{{- end }}

{{/* The other way round. */}}
{{- define "podtide.agentPolicy.rangeIn" -}}
{{ . }}.substring(0, {{ . }}.lastIndexOf('-')).replace('-', ':') + '/' + {{ . }}.substring({{ . }}.lastIndexOf('-') + 1)
{{- end }}

{{/* Whether a text is a range as it is in names. */}}
{{- define "podtide.agentPolicy.isRange" -}}
({{ . }}.contains('-') && isCIDR({{ include "podtide.agentPolicy.rangeIn" . }}))
{{- end }}

{{/* Asks a policy about every NodeSlicePool; where there is none, nobody has a slice. */}}
{{- define "podtide.agentPolicy.sliceBinding" -}}
{{ include "podtide.agentPolicy.binding" . }}
  paramRef:
    namespace: {{ .root.Values.secondaryNetworks.namespace }}
    selector: {}
    parameterNotFoundAction: Allow
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
