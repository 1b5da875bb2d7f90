{{/* The labels of every object. */}}
{{- define "llmautoscaler.labels" -}}
app.kubernetes.io/name: llmautoscaler
{{- end }}
