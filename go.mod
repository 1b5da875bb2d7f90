module github.com/inferscale/inferscale

go 1.24.0

require (
	github.com/prometheus/common v0.67.5 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)
