{{/* The labels of every object. */}}
{{- define "llmautoscaler.labels" -}}
app.kubernetes.io/name: llmautoscaler
{{- end }}

{{/* The rules of what is done where LLMAutoScalers are: in all namespaces, or in those of the value namespaces. */}}
{{- define "llmautoscaler.work" -}}
- apiGroups: [autoscaling.inferscale.io]
  resources: [llmautoscalers]
  verbs: [get, list, watch, patch] # patch: the annotations that keep the state
- apiGroups: [autoscaling.inferscale.io]
  resources: [llmautoscalers/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- if .Values.webhook.enabled }}
- apiGroups: [autoscaling] # the webhook looks for other autoscalers of the same target
  resources: [horizontalpodautoscalers]
  verbs: [list]
- apiGroups: [keda.sh]
  resources: [scaledobjects]
  verbs: [list]
{{- end }}
{{- range .Values.targets }}
- apiGroups: [{{ .apiGroup | quote }}]
  resources:
    {{- range .resources }}
    - {{ . }}/scale
    {{- end }}
  verbs: [get, update]
- apiGroups: [{{ .apiGroup | quote }}] # to say who else writes their count
  resources:
    {{- range .resources }}
    - {{ . }}
    {{- end }}
  verbs: [get]
{{- end }}
{{- end }}
