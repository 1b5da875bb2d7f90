package keda
import (
 _ "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
 _ "github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
 _ "github.com/inferscale/inferscale/adapters/k8s/api/build"
 _ "google.golang.org/grpc/health"
 _ "google.golang.org/protobuf/proto"
 _ "k8s.io/client-go/dynamic/dynamicinformer"
 _ "k8s.io/client-go/kubernetes"
 _ "sigs.k8s.io/yaml"
 _ "github.com/stretchr/testify/require"
 _ "pgregory.net/rapid"
)
