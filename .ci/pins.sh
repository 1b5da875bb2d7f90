# Sourced. A module that stands for other controllers: it has older versions than ours of what both need.
# pins: writes them into the go.mod of this folder. moved: what go get has changed of them, and of what they need.
pins() {
	go mod init example.com/consumer 2> /dev/null
	go mod edit -go=1.24.0
	local pin
	for pin in github.com/prometheus/common@v0.55.0 google.golang.org/protobuf@v1.35.1 github.com/stretchr/testify@v1.9.0 \
		k8s.io/api@v0.31.0 k8s.io/apimachinery@v0.31.0 k8s.io/client-go@v0.31.0 sigs.k8s.io/controller-runtime@v0.19.0; do
		go mod edit -require="$pin"
	done
	go list -m all | sort > before
}
moved() {
	go list -m all > after || return
	join before <(sort after) | awk '$2 != $3 {print $1, $2, "->", $3}'
}
