module github.com/inferscale/inferscale/examples

go 1.24.0

require github.com/inferscale/inferscale v0.0.0

replace github.com/inferscale/inferscale => ../
