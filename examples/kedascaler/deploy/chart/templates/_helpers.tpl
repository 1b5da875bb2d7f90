{{/* The labels of every object. */}}
{{- define "kedascaler.labels" -}}
app.kubernetes.io/name: kedascaler
{{- end }}

{{/* The namespace of KEDA. */}}
{{- define "kedascaler.keda" -}}
{{ .Values.keda.namespace | default .Release.Namespace }}
{{- end }}

{{/* Further names of the server's certificate: the API server calls the webhook by the first. */}}
{{- define "kedascaler.names" -}}
{{- $names := .Values.certs.serverNames }}
{{- if .Values.webhook.enabled }}
{{- $names = prepend $names (printf "%s-webhook.%s.svc" .Values.service .Release.Namespace) }}
{{- end }}
{{- join "," $names }}
{{- end }}
