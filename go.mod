module github.com/inferscale/inferscale

go 1.24.0

require (
	github.com/robfig/cron/v3 v3.0.1
	github.com/stretchr/testify v1.8.0
	go.yaml.in/yaml/v3 v3.0.2
	pgregory.net/rapid v1.1.0
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
